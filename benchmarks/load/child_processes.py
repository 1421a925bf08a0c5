"""Processor time and memory of the processes that this one has started (Linux)."""

import os
from pathlib import Path

from load.resident import MEGABYTE

TICKS = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
PARENT, USER, SYSTEM, PAGES = 1, 11, 12, 21
"""The places in a line of /proc/PID/stat, behind the name of the program."""


def child_cpu_seconds() -> float:
    """Processor time of the children that are running."""
    return sum((int(fields[USER]) + int(fields[SYSTEM])) / TICKS for fields in _children())


def child_megabytes() -> float:
    """Megabytes that the children that are running have in memory now."""
    return sum(int(fields[PAGES]) * PAGE_BYTES / MEGABYTE for fields in _children())


def _children() -> list[list[str]]:
    found = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue  # It has ended.
        if int(fields[PARENT]) == os.getpid():
            found.append(fields)
    return found
