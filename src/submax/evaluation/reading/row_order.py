"""Rows that were there before, and the order of the others."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Integers
from submax.evaluation.reading.bad_rows import BadRows
from submax.evaluation.reading.column_names import ColumnNames

Table = dict[str, NDArray[Any]]


def without_repeats(columns: Table, names: ColumnNames, bad: BadRows) -> None:
    """Keep the first of the rows with an id."""
    if names.id is None or "id" not in columns:
        return
    identifier = columns.pop("id")
    ordered = np.sort(identifier)
    if not (ordered[1:] == ordered[:-1]).any():
        return
    order = np.argsort(identifier, kind="stable")
    same = identifier[order[1:]] == identifier[order[:-1]]
    repeated = np.zeros(len(order), dtype=bool)
    repeated[order[1:]] = same
    first, row = int(np.argmax(repeated)), columns["row"]
    before = int(np.argmax(identifier == identifier[first]))
    bad.note_repeats(names.id, int(np.count_nonzero(repeated)), int(row[first]), int(row[before]))
    _take(columns, np.flatnonzero(~repeated))


class Descent:
    """Whether whole numbers go backwards, seen part by part."""

    def __init__(self) -> None:
        self._last: int | None = None
        self._count, self._row = 0, 0

    def see(self, number: Integers, row: Integers) -> None:
        """The next ones, and the rows in which they stand."""
        if number.size == 0:
            return
        before = number[0] if self._last is None else self._last
        back = np.flatnonzero(number < np.append(before, number[:-1]))
        if back.size and self._count == 0:
            self._row = int(row[back[0]])
        self._count += back.size
        self._last = number[-1]

    def notes(self, name: str | None, bad: BadRows) -> Iterator[str]:
        """One, if they did."""
        if self._count:
            yield (
                f"the ids in {name!r} go backwards (row {bad.in_file(self._row)} is below the one "
                f"before, as are {self._count} in all); there is no column of times, and the rows "
                "were left as they are"
            )


def in_order(columns: Table, names: ColumnNames, bad: BadRows) -> Iterator[str]:
    """Sort the rows by time; notes on whether they were."""
    row = columns.pop("row", None)
    time = columns.pop("time", None)
    if time is not None and row is not None:
        back = np.flatnonzero(time[1:] < time[:-1])
        if back.size:
            yield (
                f"the rows were not in the order of {names.time!r} ({_first(row, back, bad)} is "
                f"earlier than the one before, as are {back.size} in all), and were sorted"
            )
            _take(columns, np.argsort(time, kind="stable"))


def _first(row: Integers, back: Integers, bad: BadRows) -> str:
    return f"row {bad.in_file(int(row[back[0] + 1]))}"


def _take(columns: Table, which: Integers) -> None:
    # One by one, so that not all of them are in memory twice.
    for name in list(columns):
        columns[name] = columns[name][which]
