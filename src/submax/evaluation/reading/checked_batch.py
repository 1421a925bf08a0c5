"""A batch of rows of a log, and which of its rows cannot be used."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from submax.core.arrays import Booleans, Floats, Integers
from submax.evaluation.reading.bad_rows import BadRows
from submax.evaluation.reading.columns.cells import numbers
from submax.evaluation.reading.columns.vocabulary import as_name

NO_ID = "is missing: every row needs an id"


class CheckedBatch:
    """A batch whose columns are read and checked; ``bad [n]`` marks rows with a problem.

    Only rows that are ``counted`` can be bad: the others are left out of the log anyway.
    """

    def __init__(self, batch: Any, bad: BadRows, first_row: int, counted: Booleans) -> None:
        self._batch, self._all, self._first, self._counted = batch, bad, first_row, counted
        self.rows = batch.num_rows
        self.bad = np.zeros(self.rows, dtype=bool)

    def column(self, name: str) -> Any:
        """Return a column as a pyarrow array."""
        return self._batch.column(name)

    def note(self, column: str, reason: str, bad: Booleans) -> None:
        """Mark rows as bad because of a column, and count them under a reason."""
        bad = bad & self._counted
        if bad.any():
            values = self._batch.column(column)
            self._all.note(column, reason, bad, self._first, lambda row: values[row].as_py())
            self.bad |= bad

    def missing(self, name: str) -> Booleans:
        """Return in which rows a column has no value."""
        return np.asarray(self.column(name).is_null().to_numpy(zero_copy_only=False))

    def numbers_or(self, column: str, default: float | None) -> Floats:
        """Return the numbers of a column, with the default in place of missing ones.

        Without a default a row with a missing number is bad.
        """
        if default is None:
            return self.required_numbers(column)
        found = numbers(self.column(column))
        self.note(column, "is not a finite number", found.wrong)
        return np.where(found.missing, default, found.values)

    def required_numbers(
        self, column: str, read: Any = numbers, reason: str = "is not a finite number"
    ) -> Floats:
        """Return the numbers of a column; a row in which the number is missing is bad."""
        found = read(self.column(column))
        self.note(column, reason, found.wrong)
        self.note(column, "is missing", found.missing)
        values: Floats = found.values
        return values

    def identifiers(self, column: str) -> Integers:
        """Return a number for each id, equal for equal ids."""
        values = self.column(column)
        if pa.types.is_integer(values.type):
            self.note(column, NO_ID, self.missing(column))
            # Unsigned ids beyond the range of int64 become negative, and stay distinct.
            return np.asarray(values.fill_null(0).to_numpy(zero_copy_only=False)).astype(np.int64)
        found = values.to_pylist()
        if not pa.types.is_string(values.type):
            found = [as_name(value) for value in found]
        self.note(column, NO_ID, np.array([not name for name in found], dtype=bool))
        return np.fromiter((hash(name) for name in found), np.int64, len(found))

    def whole_numbers(self, column: str) -> Integers | None:
        """Return the integers of a column, 0 for missing ones; None if some are not integers."""
        try:
            values = pc.cast(self.column(column), pa.int64()).fill_null(0)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
        return np.asarray(values.to_numpy(zero_copy_only=False))
