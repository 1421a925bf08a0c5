"""Numbers that are added to sums by cell, in a fixed order."""

from typing import Self

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers

FEW = 0.5
"""If less than this share of the numbers of a column is not 0, the others are left out."""

EXACT = 2.0**52
"""Floats have no gaps between integers below this one, and far beyond it."""


class AddedNumbers:
    """A table of numbers, ``[n, columns]``, of which each row is added to the sums of a cell.

    Rows are added one after the other, so that every sum has the bits that a loop would give. What
    can be found out about the numbers once is used for many sums: adding 0 changes no sum, so that
    zeros are left out, and ones are counted. Most rewards of many logs are 0.

    >>> numbers = AddedNumbers(np.array([[1.0, 0.0], [1.0, 0.25], [1.0, 0.5]]))
    >>> numbers.added_to(np.zeros((2, 2)), np.array([0, 1, 1])).tolist()
    [[1.0, 0.0], [2.0, 0.75]]
    """

    def __init__(self, table: Floats) -> None:
        self.table = table
        self._columns = [_Column(np.ascontiguousarray(column)) for column in table.T]

    def take(self, rows: NDArray[np.bool_]) -> Self:
        """Return some of the rows."""
        return type(self)(self.table[rows])

    def added_to(self, before: Floats, cell: Integers) -> Floats:
        """Return sums, ``[cells, columns]``, after each row was added to those of its cell."""
        found = np.empty(before.shape)
        known = np.arange(len(before))
        joined = np.concatenate([known, cell])
        for number, column in enumerate(self._columns):
            first, cells = before[:, number], joined
            if column.are_ones and _are_counts(first):
                found[:, number] = first + np.bincount(cell, minlength=len(before))
                continue
            if column.places is not None:
                if not len(column.places):
                    found[:, number] = first
                    continue
                cells = np.concatenate([known, cell[column.places]])
            found[:, number] = np.bincount(cells, column.after(first), len(before))
        return found


def _are_counts(sums: Floats) -> bool:
    """Whether ones can be added in any order, because all sums are exact integers."""
    return bool(((sums == np.floor(sums)) & (np.abs(sums) < EXACT)).all())


class _Column:
    """The numbers of a column, at ``places``; None if all of them are here."""

    def __init__(self, numbers: Floats) -> None:
        places = numbers.nonzero()[0]
        is_sparse = len(places) < FEW * len(numbers)
        self.places: Integers | None = places if is_sparse else None
        self.numbers = numbers[places] if is_sparse else numbers
        self.are_ones = bool((numbers == 1.0).all())
        self._joined: Floats = np.empty(0)

    def after(self, sums: Floats) -> Floats:
        """Return sums so far, which are added to 0, and then the numbers; until the next call."""
        size = len(sums) + len(self.numbers)
        if len(self._joined) != size:
            self._joined = np.empty(size)
            self._joined[len(sums) :] = self.numbers
        self._joined[: len(sums)] = sums
        return self._joined
