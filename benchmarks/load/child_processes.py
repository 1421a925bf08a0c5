"""Processor time and memory of the processes that this one starts (Linux)."""

import os
from pathlib import Path

from load.resident import MEGABYTE

TICKS = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
PARENT, USER, SYSTEM, PAGES = 1, 11, 12, 21
"""The places in a line of /proc/PID/stat, behind the name of the program."""


class NewChildren:
    """The processes that this one has started since this object was made, and that are running.

    Processes that were running before, such as those of a test runner, do not count.
    """

    def __init__(self) -> None:
        self._before = set(_children())

    def cpu_seconds(self) -> float:
        """Processor time that they have used."""
        return sum((int(one[USER]) + int(one[SYSTEM])) / TICKS for one in self._running())

    def megabytes(self) -> float:
        """Megabytes that they have in memory now."""
        return sum(int(one[PAGES]) * PAGE_BYTES / MEGABYTE for one in self._running())

    def _running(self) -> list[list[str]]:
        return [fields for pid, fields in _children().items() if pid not in self._before]


def _children() -> dict[int, list[str]]:
    """Return the fields of every process that this one has started, by its number."""
    found = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue  # It has ended.
        if int(fields[PARENT]) == os.getpid():
            found[int(place.parent.name)] = fields
    return found
