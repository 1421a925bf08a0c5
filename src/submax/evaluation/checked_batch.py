"""A batch of a log, and which of its rows are bad."""

from typing import Any

import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.evaluation.bad_rows import BadRows
from submax.evaluation.cells import numbers

MASK = (1 << 63) - 1


class CheckedBatch:
    """One batch, and which of its rows turn out to be bad; those left out are never bad."""

    def __init__(self, batch: Any, bad: BadRows, first_row: int, counted: Booleans) -> None:
        self._batch, self._all, self._first, self._counted = batch, bad, first_row, counted
        self.rows = batch.num_rows
        self.bad = np.zeros(self.rows, dtype=bool)

    def column(self, name: str) -> Any:
        """One column, as it came."""
        return self._batch.column(name)

    def note(self, column: str, reason: str, bad: Booleans) -> None:
        """Note the rows in which a column is bad."""
        bad = bad & self._counted
        if bad.any():
            values = self._batch.column(column)
            self._all.note(column, reason, bad, self._first, lambda row: values[row].as_py())
            self.bad |= bad

    def numbers_or(self, column: str, default: float | None) -> Floats:
        """The numbers, and the default where there is none; without a default that is bad."""
        if default is None:
            return self.required_numbers(column)
        found = numbers(self.column(column))
        self.note(column, "is no finite number", found.wrong)
        return np.where(found.missing, default, found.values)

    def required_numbers(
        self, column: str, read: Any = numbers, reason: str = "is no finite number"
    ) -> Floats:
        """The numbers; where there is none, it is bad."""
        found = read(self.column(column))
        self.note(column, reason, found.wrong)
        self.note(column, "is missing", found.missing)
        values: Floats = found.values
        return values

    def identifiers(self, column: str) -> Integers:
        """A number for each id, by which equal ones are found."""
        values = self.column(column).to_pylist()
        missing = np.array([value is None for value in values])
        self.note(column, "is missing: every row has an id", missing)
        return np.fromiter((hash(value) & MASK for value in values), np.int64, len(values))
