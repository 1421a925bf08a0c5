"""The contexts of a log."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.errors import InputError
from submax.evaluation.reading.checked_batch import CheckedBatch
from submax.evaluation.reading.column_names import ColumnNames, check_same
from submax.evaluation.reading.vocabulary import MISSING, NO_NAME, UNKNOWN, Vocabulary
from submax.schema.context_schema import LARGEST, Category, ContextSchema, Field, Number

MOST_FOUND = 1000
"""Different values of a column that is taken for a category without being declared."""


class ContextColumns:
    """Reads a number for each field, that of a category its place."""

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
        """The rows' contexts, ``[n, F]``."""
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
        batch.note(column, "is beyond the numbers of a context", beyond)
        return np.where(beyond, 0.0, values)

    def _category(
        self, batch: CheckedBatch, name: str, vocabulary: Vocabulary, default: Any
    ) -> Integers:
        column = self._columns[name]
        code = vocabulary.code(batch.column(column))
        if default is not None:
            self._filled[name] = code < 0
            return np.where(code < 0, vocabulary.numbers[str(default)], code)
        unknown = NO_NAME if vocabulary.open else "is none of the categories"
        batch.note(column, "is missing, and no default is declared", code == MISSING)
        batch.note(column, unknown, code == UNKNOWN)
        if vocabulary.open and len(vocabulary.numbers) > MOST_FOUND:
            raise InputError(
                f"column {column!r} has more than {MOST_FOUND} different values: leave it out of "
                "the context, or declare its categories"
            )
        return code

    def keep(self, good: Booleans) -> None:
        """Count the defaults in those rows of the last batch that are kept."""
        for name, filled in self._filled.items():
            self._defaults[name] += int(np.count_nonzero(filled & good))

    def notes(self) -> Iterator[str]:
        """Where a default was taken."""
        for name, count in self._defaults.items():
            field = self._fields[name]
            if count and field is not None:
                what = "missing" if isinstance(field, Number) else "missing or none of its values"
                yield (
                    f"column {self._columns[name]!r}: {count} values are {what}, and the default "
                    f"{field.default!r} stands for them"
                )

    def finished(self, context: NDArray[np.float32]) -> ContextSchema:
        """What was declared, or what was met, with the categories sorted, in ``context`` too."""
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
    """The categories; None for numbers."""
    if field is None:
        return None if numeric else Vocabulary()
    return Vocabulary(field.values) if isinstance(field, Category) else None
