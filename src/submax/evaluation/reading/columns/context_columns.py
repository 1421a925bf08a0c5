"""Reads the columns of a log that hold the context."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.errors import InputError
from submax.evaluation.reading.checked_batch import CheckedBatch
from submax.evaluation.reading.columns.column_names import ColumnNames, check_same
from submax.evaluation.reading.columns.vocabulary import MISSING, NO_NAME, UNKNOWN, Vocabulary
from submax.schema.context_schema import LARGEST, Category, ContextSchema, Field, Number

MOST_UNDECLARED = 1000
"""Most values of a category that is not declared: a column with more is probably an identifier."""


class ContextColumns:
    """Reads one number for each field; for a category it is the index of the value."""

    def __init__(
        self, names: ColumnNames, declared: ContextSchema | None, numeric: set[str]
    ) -> None:
        self._columns, self._declared = names.context, declared
        if declared is None:
            self._fields: dict[str, Field | None] = dict.fromkeys(names.context)
        else:
            check_same("context field", declared.names, names.context)
            self._fields = dict(zip(declared.names, declared.fields, strict=True))
        self._vocabularies = {
            name: _vocabulary(field, self._columns[name] in numeric)
            for name, field in self._fields.items()
        }
        self._filled: dict[str, Booleans] = {}
        self._defaults: Counter[str] = Counter()

    def read(self, batch: CheckedBatch) -> NDArray[np.float32]:
        """Return the contexts of the rows, ``[n, F]``."""
        context = np.empty((batch.rows, len(self._fields)), dtype=np.float32)
        for place, (name, field) in enumerate(self._fields.items()):
            vocabulary = self._vocabularies[name]
            default = None if field is None else field.default
            if vocabulary is None:
                context[:, place] = self._number(batch, name, default)
            else:
                context[:, place] = self._category(batch, name, vocabulary, default)
        return context

    def _number(self, batch: CheckedBatch, name: str, default: Any) -> Floats:
        column = self._columns[name]
        values = batch.numbers_or(column, default)
        if default is not None:
            self._filled[name] = batch.missing(column)
        beyond = np.abs(values) > LARGEST
        reason = f"is not from {-LARGEST:g} to {LARGEST:g}, as a number of the context must be"
        batch.note(column, reason, beyond)
        return np.where(beyond, 0.0, values)

    def _category(
        self, batch: CheckedBatch, name: str, vocabulary: Vocabulary, default: Any
    ) -> Integers:
        column = self._columns[name]
        code = vocabulary.code(batch.column(column))
        if default is not None:
            self._filled[name] = code < 0
            return np.where(code < 0, vocabulary.indices[str(default)], code)
        unknown = NO_NAME if vocabulary.open else "is not one of the declared categories"
        batch.note(column, "is missing, and no default is declared", code == MISSING)
        batch.note(column, unknown, code == UNKNOWN)
        if vocabulary.open and len(vocabulary.indices) > MOST_UNDECLARED:
            raise InputError(
                f"column {column!r} has more than {MOST_UNDECLARED} different values, too many for "
                "a category that is not declared: leave it out of the context, or declare its "
                "categories",
                parameter=column,
            )
        return code

    def count_defaults(self, good: Booleans) -> None:
        """Count the defaults that were used in the good rows of the last batch."""
        for name, filled in self._filled.items():
            self._defaults[name] += int(np.count_nonzero(filled & good))

    def notes(self) -> Iterator[str]:
        """Yield a sentence for each column in which a default replaced values."""
        for name, count in self._defaults.items():
            field = self._fields[name]
            if count and field is not None:
                what = "missing" if isinstance(field, Number) else "missing or not declared"
                yield (
                    f"column {self._columns[name]!r}: {count} values are {what}, and were replaced "
                    f"by the default {field.default!r}"
                )

    def finished(self, context: NDArray[np.float32]) -> ContextSchema:
        """Return the declared schema, or the schema of the values that occur.

        The categories that occur are sorted; their indices in ``context`` are replaced.
        """
        if self._declared is not None:
            return self._declared
        fields: dict[str, Field] = {}
        for place, (name, vocabulary) in enumerate(self._vocabularies.items()):
            if vocabulary is None:
                fields[name] = Number()
            else:
                code = context[:, place].astype(np.int64)
                values, number = vocabulary.sorted(np.unique(code))
                fields[name] = Category(tuple(values))
                context[:, place] = number[code]
        return ContextSchema.of(fields)


def _vocabulary(field: Field | None, numeric: bool) -> Vocabulary | None:
    """Return the vocabulary of a category; None for a number."""
    if field is None:
        return None if numeric else Vocabulary()
    return Vocabulary(field.values) if isinstance(field, Category) else None
