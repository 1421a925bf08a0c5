"""Numbers that are added to sums by cell, in a fixed order."""

from collections.abc import Sequence
from copy import copy
from typing import Self

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers

FEW = 0.5
"""If less than this share of the numbers of a column is not 0, the others are left out."""

EXACT = 2.0**52
"""Below 2⁵², adding 1 to an integer float is exact."""


class AddedNumbers:
    """Columns of ``n`` numbers, ``[columns, n]``; row by row they are added to the sums of a cell.

    Rows are added one after the other, so that every sum has the bits that a loop would give. What
    can be found out about the numbers once is used for many sums: adding 0 changes no sum, so that
    zeros are left out, and ones are counted. Most rewards of many logs are 0.

    >>> numbers = AddedNumbers(np.array([[1.0, 1.0, 1.0], [0.0, 0.25, 0.5]]))
    >>> numbers.added_to(np.zeros((2, 2)), np.array([0, 1, 1])).tolist()
    [[1.0, 0.0], [2.0, 0.75]]
    """

    def __init__(self, table: Floats) -> None:
        self.table = table
        self._columns: list[_AddedColumn] = []
        for numbers in table:
            before = self._columns[-1].places if self._columns else None
            self._columns.append(_AddedColumn(np.ascontiguousarray(numbers), before))

    def take(self, rows: NDArray[np.bool_]) -> Self:
        """Return some of the rows."""
        return type(self)(self.table[:, rows])

    def select(self, columns: Sequence[int]) -> Self:
        """Return some of the columns."""
        chosen = copy(self)
        chosen.table = self.table[columns]
        chosen._columns = [self._columns[number] for number in columns]
        return chosen

    def added_to(self, before: Floats, cell: Integers) -> Floats:
        """Return sums, ``[cells, columns]``, after each row was added to those of its cell."""
        found = np.empty(before.shape)
        # The cells of the last column's places: several columns often have the same.
        cells, places = cell, None
        for number, column in enumerate(self._columns):
            first = before[:, number]
            if column.places is not places:
                places = column.places
                cells = cell if places is None else cell[places]
            if not len(cells):
                found[:, number] = first
            elif column.are_ones and _are_counts(first):
                found[:, number] = first + np.bincount(cells, minlength=len(before))
            else:
                joined = np.concatenate([np.arange(len(before)), cells])
                found[:, number] = np.bincount(joined, column.after(first), len(before))
        return found


def _are_counts(sums: Floats) -> bool:
    """Whether ones can be added in any order, because all sums are exact integers."""
    return bool(((sums == np.floor(sums)) & (np.abs(sums) < EXACT)).all())


class _AddedColumn:
    """The numbers of a column, at ``places``; None if all of them are here.

    If the places are the same as ``before``, those of another column, the array is shared.
    """

    def __init__(self, numbers: Floats, before: Integers | None) -> None:
        places = numbers.nonzero()[0]
        if before is not None and np.array_equal(before, places):
            places = before
        self.are_ones = bool((numbers[places] == 1.0).all())
        few = 1.0 if self.are_ones else FEW
        self.places: Integers | None = places if len(places) < few * len(numbers) else None
        self.numbers = numbers if self.places is None else numbers[places]
        self._joined: Floats = np.empty(0)

    def after(self, sums: Floats) -> Floats:
        """Return sums so far, which are added to 0, and then the numbers; until the next call."""
        size = len(sums) + len(self.numbers)
        if len(self._joined) != size:
            self._joined = np.empty(size)
            self._joined[len(sums) :] = self.numbers
        self._joined[: len(sums)] = sums
        return self._joined
