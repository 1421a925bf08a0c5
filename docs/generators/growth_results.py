"""The published results of benchmarks/live/growth.py: docs/results/growth.csv."""

import csv
from collections.abc import Callable
from typing import NamedTuple

from published import RESULTS

FILE = RESULTS / "growth.csv"
LOG = ""
"""The policy of measures that depend on the log alone."""


class Series(NamedTuple):
    """One measure of a log, with one policy, by the number of rows."""

    log: str
    policy: str
    values: dict[int, float]


class Measure(NamedTuple):
    """A measure with its goal; ``value`` computes it from the numbers of one cell."""

    name: str
    unit: str
    limit: float | None
    at_most: bool
    value: Callable[[dict[str, float]], float | None]

    @property
    def goal(self) -> str:
        """The goal in words."""
        if self.limit is None:
            return ""
        return f"at {'most' if self.at_most else 'least'} {self.limit:,.0f}"

    def meets(self, value: float) -> bool | None:
        """Whether a value meets the goal; None if there is no goal."""
        if self.limit is None:
            return None
        return value <= self.limit if self.at_most else value >= self.limit


def _named(name: str) -> Callable[[dict[str, float]], float | None]:
    return lambda cell: cell.get(name)


def _ratio(cell: dict[str, float]) -> float | None:
    if "decide_p99_ms" not in cell:
        return None
    return cell["decide_p99_updating_ms"] / cell["decide_p99_ms"]


MEASURES = (
    Measure("update with 100 new rows", "ms of processor time", 50, True, _named("update_cpu_ms")),
    Measure("resident memory after updates", "MB", 300, True, _named("memory_mb")),
    Measure("decide p99 during an update", "times p99 without", 2, True, _ratio),
    Measure("first read", "events/s", 200_000, False, _named("read_events_per_s")),
    Measure("export", "rows/s", 100_000, False, _named("export_rows_per_s")),
    Measure(
        "on disk, compacted",
        "bytes a decision",
        250,
        True,
        _named("compacted_bytes_per_decision"),
    ),
)
"""Measures that have a goal, in the order of the page."""
FURTHER = (
    Measure("update, wall time", "ms", None, True, _named("update_wall_ms")),
    Measure(
        "update, training process",
        "ms of processor time",
        None,
        True,
        _named("update_training_cpu_ms"),
    ),
    Measure("training process, memory", "MB", None, True, _named("training_mb")),
    Measure(
        "longest wait for Python's lock in an update",
        "ms",
        None,
        True,
        _named("longest_wait_for_lock_ms"),
    ),
    Measure("decide p50", "ms", None, True, _named("decide_p50_ms")),
    Measure("decide p99", "ms", None, True, _named("decide_p99_ms")),
    Measure("decide p50 during an update", "ms", None, True, _named("decide_p50_updating_ms")),
    Measure("decide p99 during an update", "ms", None, True, _named("decide_p99_updating_ms")),
    Measure("fit from scratch", "s of processor time", None, True, _named("scratch_cpu_s")),
    Measure(
        "fit from scratch, training process",
        "s of processor time",
        None,
        True,
        _named("scratch_training_cpu_s"),
    ),
    Measure("fit from scratch, most memory", "MB", None, True, _named("scratch_peak_mb")),
    Measure("first read, most memory", "MB", None, True, _named("read_peak_mb")),
    Measure("export, most memory", "MB", None, True, _named("export_peak_mb")),
    Measure("on disk", "bytes a decision", None, True, _named("bytes_per_decision")),
    Measure(
        "export after compaction", "rows/s", None, False, _named("compacted_export_rows_per_s")
    ),
    Measure("open and decide once", "s", None, True, _named("open_s")),
)


class Growth:
    """The numbers of the file, by log, policy and number of rows."""

    def __init__(self) -> None:
        self.cells: dict[tuple[str, str, int], dict[str, float]] = {}
        self.machines: dict[str, None] = {}
        with FILE.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                key = (row["log"], row["policy"], int(row["rows"]))
                self.cells.setdefault(key, {})[row["measure"]] = float(row["value"])
                self.machines[row["machine"]] = None

    @property
    def sizes(self) -> list[int]:
        """All numbers of rows, in order."""
        return sorted({rows for _, _, rows in self.cells})

    def series(self, measure: Measure) -> list[Series]:
        """The values of a measure for every log and policy that has some."""
        found: dict[tuple[str, str], dict[int, float]] = {}
        for (log, policy, rows), cell in sorted(self.cells.items()):
            value = measure.value(cell)
            if value is not None:
                found.setdefault((log, policy), {})[rows] = value
        return [Series(log, policy, values) for (log, policy), values in found.items()]
