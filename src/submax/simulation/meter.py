"""How far the cells under way are, counted across processes."""

import multiprocessing
from typing import Any


class Meter:
    """Decisions and updates of all replicas so far; every process of a pool adds to it."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._decisions: Any = context.Value("q", 0)
        self._updates: Any = context.Value("q", 0)

    @property
    def decisions(self) -> int:
        """Decisions taken."""
        return int(self._decisions.value)

    @property
    def updates(self) -> int:
        """Times that feedback came back to a replica."""
        return int(self._updates.value)

    def add(self, decisions: int, updates: int) -> None:
        """Count more of both."""
        for counter, more in ((self._decisions, decisions), (self._updates, updates)):
            with counter.get_lock():
                counter.value += more


_installed: list[Meter] = []


def install(meter: Meter | None) -> None:
    """Let the cells of this process count on a meter; None for no longer."""
    _installed[:] = [] if meter is None else [meter]


def count(decisions: int, updates: int) -> None:
    """Count on the meter of this process, if it has one."""
    for meter in _installed:
        meter.add(decisions, updates)
