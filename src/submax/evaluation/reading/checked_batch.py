"""A batch of a log, and which of its rows are bad."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from submax.core.arrays import Booleans, Floats, Integers
from submax.evaluation.reading.bad_rows import BadRows
from submax.evaluation.reading.cells import numbers
from submax.evaluation.reading.vocabulary import as_name

NO_ID = "is missing: every row has an id"


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

    def missing(self, name: str) -> Booleans:
        """In which rows a column holds nothing."""
        return np.asarray(self.column(name).is_null().to_numpy(zero_copy_only=False))

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
        values = self.column(column)
        if pa.types.is_integer(values.type):
            self.note(column, NO_ID, self.missing(column))
            # Beyond the signed numbers they become negative, each another one.
            return np.asarray(values.fill_null(0).to_numpy(zero_copy_only=False)).astype(np.int64)
        found = values.to_pylist()
        if not pa.types.is_string(values.type):
            found = [as_name(value) for value in found]
        self.note(column, NO_ID, np.array([not name for name in found], dtype=bool))
        return np.fromiter((hash(name) for name in found), np.int64, len(found))

    def whole_numbers(self, column: str) -> Integers | None:
        """The numbers, 0 where there is none; None where one of them is not whole."""
        try:
            values = pc.cast(self.column(column), pa.int64()).fill_null(0)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
        return np.asarray(values.to_numpy(zero_copy_only=False))
