"""A progress counter that all processes of a sweep share."""

import multiprocessing
from typing import Any


class Meter:
    """Counts decisions and updates over all replicas; every process of a pool adds to it."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._decisions: Any = context.Value("q", 0)
        self._updates: Any = context.Value("q", 0)

    @property
    def decisions(self) -> int:
        """The number of decisions taken so far."""
        return int(self._decisions.value)

    @property
    def updates(self) -> int:
        """How often so far feedback came back to a replica."""
        return int(self._updates.value)

    def add(self, decisions: int, updates: int) -> None:
        """Add to both counts; processes can call this at the same time."""
        for counter, more in ((self._decisions, decisions), (self._updates, updates)):
            with counter.get_lock():
                counter.value += more


_installed: list[Meter] = []


def install(meter: Meter | None) -> None:
    """Set the meter on which this process counts; None removes it."""
    _installed[:] = [] if meter is None else [meter]


def count(decisions: int, updates: int) -> None:
    """Add to the meter of this process, if one is installed."""
    for meter in _installed:
        meter.add(decisions, updates)
