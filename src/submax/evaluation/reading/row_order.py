"""Removes repeated rows and sorts the others by time."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Integers
from submax.evaluation.reading.bad_rows import BadRows
from submax.evaluation.reading.columns.column_names import ColumnNames

Table = dict[str, NDArray[Any]]


def without_repeats(columns: Table, names: ColumnNames, bad: BadRows) -> None:
    """Remove, in place, rows whose id occurred in an earlier row, and count them as bad."""
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


class IdOrder:
    """Finds out, batch by batch, whether integer ids ever decrease."""

    def __init__(self) -> None:
        self._last: int | None = None
        self._count, self._row = 0, 0

    def add(self, number: Integers, row: Integers) -> None:
        """Add the ids of the next batch, and the numbers of their rows."""
        if number.size == 0:
            return
        before = number[0] if self._last is None else self._last
        smaller = np.flatnonzero(number < np.append(before, number[:-1]))
        if smaller.size and self._count == 0:
            self._row = int(row[smaller[0]])
        self._count += smaller.size
        self._last = number[-1]

    def notes(self, name: str | None, bad: BadRows) -> Iterator[str]:
        """Yield a sentence if any id was smaller than the one before."""
        if self._count:
            yield (
                f"the ids in {name!r} are not in increasing order (row {bad.in_file(self._row)} is "
                f"below the row before; number of such rows: {self._count}); the rows were not "
                "sorted, since there is no column of times"
            )


def in_order(columns: Table, names: ColumnNames, bad: BadRows) -> Iterator[str]:
    """Sort the rows by time, in place, and yield a sentence if they were not sorted."""
    row = columns.pop("row", None)
    time = columns.pop("time", None)
    if time is not None and row is not None:
        earlier = np.flatnonzero(time[1:] < time[:-1])
        if earlier.size:
            first = bad.in_file(int(row[earlier[0] + 1]))
            yield (
                f"the rows were not in the order of {names.time!r} (row {first} is earlier than "
                f"the row before; number of such rows: {earlier.size}), and were sorted"
            )
            _take(columns, np.argsort(time, kind="stable"))


def numbered(cluster: Integers) -> Integers:
    """Return the number of each row's cluster, from 0 in the order of their first rows."""
    _, first, inverse = np.unique(cluster, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse.ravel()]


def _take(columns: Table, which: Integers) -> None:
    # Replace one column at a time, so that only one of them is in memory twice.
    for name in list(columns):
        columns[name] = columns[name][which]
