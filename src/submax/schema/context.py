"""The declared fields of a context, and how their values are checked and encoded."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats
from submax.core.checks import did_you_mean, finite, one_of
from submax.core.decoding import known_type
from submax.core.errors import InputError
from submax.core.summary import listed
from submax.schema.names import check_name, check_names, short_repr

MOST_CATEGORIES = 10_000
"""Largest number of categories of a field; each takes a column of the encoded context."""
MOST_FIELDS = 1000
"""Largest number of fields of a context."""
LARGEST = 1e30
"""Largest absolute value of a number, far enough from the limit of float32 to compute with it."""
OTHER = ""
"""The value of a category that is missing although it was not declared as optional: fields that are
added to a running bandit have it in all rows before."""
LONGEST_CATEGORY = 200
"""Characters of a category that was not declared: it is stored with each decision."""

Real = TypeVar("Real", bound=np.floating[Any])
Value = float | str
"""The value of a field: a number or a category."""


def as_number(value: object) -> float | None:
    """Return a Python or numpy number or truth value as a float; None if it is not allowed."""
    # Most values are plain floats, for which the check of all types would take longest.
    if type(value) is float and -LARGEST <= value <= LARGEST:
        return value
    known = isinstance(value, (float, int, np.integer, np.floating, np.bool_))
    return float(value) if known and -LARGEST <= value <= LARGEST else None  # type: ignore[operator, arg-type]  # a number


class Number(msgspec.Struct, frozen=True, tag="number"):
    """A field whose value is a number. A missing value is replaced by the ``default``.

    Without a default, a missing value is an error. ``check`` refuses a wrong declaration, and
    ``clean`` a wrong value. The encoding has ``width`` columns, and ``code`` is the number there.
    """

    default: float | None = None
    width = 1

    def check(self, name: str) -> None:
        if self.default is not None:
            finite(f"the default of {name!r}", self.default)
            self.clean(name, self.default)

    def clean(self, name: str, value: object) -> Value:
        number = as_number(value)
        if number is None:
            raise InputError(
                f"context {name!r} must be a number below {LARGEST:g}, not {short_repr(value)}",
                parameter=name,
            )
        return number

    def code(self, value: Value) -> float:
        return float(value)


class Category(msgspec.Struct, frozen=True, tag="category"):
    """A field with one of ``values``. A missing or unknown value is replaced by the ``default``.

    Without a default, a missing value is an error. An unknown one is kept and encoded as none of
    the values, so it is learned from as soon as it is declared.
    """

    values: tuple[str, ...]
    default: str | None = None

    def check(self, name: str) -> None:
        what = f"the categories of {name!r}"
        check_names(what, self.values, MOST_CATEGORIES, parameter=name)
        if self.default is not None and self.default not in (*self.values, OTHER):
            raise InputError(
                f"the default of {name!r} must be one of its categories, not {self.default!r}",
                parameter=name,
            )

    def clean(self, name: str, value: object) -> Value:
        is_text = isinstance(value, str)
        if is_text and value in self.values:
            # A numpy string becomes a plain one, which can be serialized.
            return str(value)
        if self.default:
            return self.default
        if is_text and 0 < len(str(value)) <= LONGEST_CATEGORY and str(value).isprintable():
            return str(value)
        raise InputError(
            f"context {name!r} must be one of {', '.join(self.values)[:200]}, not {value!r:.60}",
            parameter=name,
        )

    @property
    def width(self) -> int:
        return len(self.values)

    def code(self, value: Value) -> float:
        """The index of the category; -1 if it was not declared."""
        return self.values.index(str(value)) if value in self.values else -1


Field = Number | Category


class ContextSchema(msgspec.Struct, frozen=True, omit_defaults=True, dict=True):
    """The fields of a context by name, in a fixed order.

    An encoded context has the columns of all fields in order, except those in ``added``: columns
    that were added while a bandit was running come at the end. So a model that was fitted before
    takes the first columns. An added column is given by its field and the index of its category.
    """

    names: tuple[str, ...] = ()
    fields: tuple[Field, ...] = ()
    added: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, context: object) -> "ContextSchema":
        """Return the schema for a table such as ``{"country": ["fr", "de"], "age": float}``.

        Instead of a type or a list, a field may be a ``Number`` or a ``Category`` with a default.
        """
        if context is None:
            return cls()
        if not isinstance(context, Mapping) or len(context) > MOST_FIELDS:
            raise InputError(
                f"context must be a table of at most {MOST_FIELDS} fields such as "
                f"{{'country': ['fr', 'de'], 'age': float}}, not {context!r:.60}",
                parameter="context",
            )
        fields = []
        for name, given in context.items():
            check_name("the name of a context field", name)
            fields.append(_field(name, given))
            fields[-1].check(name)
        return cls(tuple(context), tuple(fields))

    @cached_property
    def width(self) -> int:
        return sum(field.width for field in self.fields)

    @cached_property
    def numeric(self) -> list[bool]:
        """For each column, whether it is a number and not a category."""
        found = [isinstance(field, Number) for field in self.fields for _ in range(field.width)]
        return [found[place] for place in self._order]

    @cached_property
    def _is_plain(self) -> bool:
        """Whether a context is encoded by its values, since all of them are numbers."""
        return not self.added and all(isinstance(field, Number) for field in self.fields)

    @cached_property
    def _order(self) -> list[int]:
        """For each column of the encoding, its place if columns were in the order of the fields."""
        columns = [
            (n, index) for n, field in enumerate(self.fields) for index in range(field.width)
        ]
        added = {column: place for place, column in enumerate(self.added)}
        return sorted(range(len(columns)), key=lambda place: added.get(columns[place], -1))

    @property
    def table(self) -> dict[str, Field]:
        return dict(zip(self.names, self.fields, strict=True))

    def extended(self, wanted: "ContextSchema") -> "ContextSchema":
        """Return the schema with the categories and fields that ``wanted`` has in addition.

        Nothing may be missing. In earlier rows, a new number without a default counts as 0, and a
        new category as none of its values.
        """
        after = wanted.table
        fields, added = [], list(self.added)
        for number, (name, field) in enumerate(self.table.items()):
            now = after.pop(name, None)
            gone = isinstance(now, Category) and {*getattr(field, "values", ())} - {*now.values}
            if type(now) is not type(field) or gone:
                raise InputError(
                    f"the context field {name!r} would lose its values: fields and categories can "
                    "only be added",
                    parameter="context",
                )
            if isinstance(now, Category) and isinstance(field, Category):
                new = [value for value in now.values if value not in field.values]
                added += [(number, len(field.values) + place) for place in range(len(new))]
                kept = now.default is None and field.default == OTHER
                now = Category((*field.values, *new), OTHER if kept else now.default)
            elif now is None or now.default is None:
                now = field
            fields.append(now)
        for field in after.values():
            field = msgspec.structs.replace(field, default=_default(field))
            added += [(len(fields), index) for index in range(field.width)]
            fields.append(field)
        names = (*self.names, *after)
        ContextSchema.of(dict(zip(names, fields, strict=True)))
        return ContextSchema(names, tuple(fields), tuple(added))

    def with_missing(self, values: Sequence[Value]) -> list[Value]:
        """Return the values of an earlier decision, with defaults for fields that were added."""
        return [*values, *map(_default, self.fields[len(values) :])]

    def widened(self, encoded: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return contexts that were encoded earlier, with the columns that were added since."""
        count, width = encoded.shape
        if width == self.width:
            return encoded
        defaults = self.encode([self.with_missing([])])[0, width:]
        return np.hstack([encoded, np.tile(defaults.astype(np.float32), (count, 1))])

    def unknown(self, values: Sequence[Value]) -> list[str]:
        """Return the names of the fields whose category was not declared."""
        if self._is_plain:
            return []
        return [
            name
            for name, field, value in zip(self.names, self.fields, values, strict=True)
            if type(field) is Category and value not in field.values and value != OTHER
        ]

    def clean(self, context: object) -> list[Value]:
        """Return the values in the order of the fields, with defaults for missing ones.

        Unknown fields, values that are not allowed, and missing values without a default raise an
        ``InputError``.
        """
        if context is None:
            context = {}
        if type(context) is not dict:
            if not isinstance(context, Mapping):
                raise InputError(
                    f"a context must be a table of values by field, not {context!r:.60}",
                    parameter="context",
                )
            context = dict(context)
        # If as many keys as there are declared names in it, there are no others.
        if sum(map(context.__contains__, self.names)) < len(context):
            self._refuse_unknown(context)
        values: list[Value] = []
        for name, field in zip(self.names, self.fields, strict=True):
            value = context.get(name)
            if value is not None:
                values.append(field.clean(name, value))
            elif field.default is not None:
                values.append(field.default)
            else:
                raise InputError(
                    f"the context lacks {listed(self._missing(context))}: pass a value, as in "
                    f"decide({{{name!r}: …}}), or declare a default",
                    parameter=name,
                )
        return values

    def _refuse_unknown(self, context: Mapping[Any, Any]) -> None:
        known = frozenset(self.names)
        unknown = [name for name in context if name not in known]
        missing = self._missing(context)
        raise InputError(
            f"the context has undeclared fields: {listed([f'{name!r:.60}' for name in unknown])}; "
            f"{did_you_mean(str(unknown[0])[:80], self.names)}"
            f"declared: {', '.join(self.names) or 'none'}"
            + (f"; missing: {listed(missing)}" if missing else ""),
            parameter=str(unknown[0])[:60],
        )

    def _missing(self, context: Mapping[Any, Any]) -> list[str]:
        """The names of fields that have neither a value nor a default, for a message."""
        given = {name for name, value in context.items() if value is not None}
        needed = (name for name, one in self.table.items() if one.default is None)
        return [f"{name!r:.60}" for name in needed if name not in given]

    def encode(self, rows: Sequence[Sequence[Value]]) -> Floats:
        """Return the encoded contexts of decisions, ``[n, D]``.

        Each row has the values that ``clean`` returned; others are not checked again.
        """
        if not self._is_plain:
            rows = [
                [field.code(value) for field, value in zip(self.fields, values, strict=True)]
                for values in rows
            ]
        values: Floats = np.array(rows, dtype=np.float64).reshape(len(rows), len(self.fields))
        return values if self._is_plain else self.encode_rows(values)

    def encode_rows(self, values: NDArray[Real]) -> NDArray[Real]:
        """Return the encoded contexts of rows, as precise as ``values``: ``[n, fields] -> [n, D]``.

        ``values`` has one column for each field, in which a category is given by its index; -1
        stands for one that was not declared.
        """
        encoded = np.zeros((len(values), self.width), dtype=values.dtype)
        first = 0
        for place, field in enumerate(self.fields):
            if isinstance(field, Category):
                index = values[:, place].astype(np.int64)
                (row,) = np.nonzero(index >= 0)
                encoded[row, first + index[row]] = 1.0
            else:
                encoded[:, first] = values[:, place]
            first += field.width
        return encoded[:, self._order] if self.added else encoded


def _default(field: Field) -> Value:
    """The value of a field in rows that were made before it was added."""
    if field.default is not None:
        return field.default
    return OTHER if isinstance(field, Category) else 0.0


def _field(name: str, given: object) -> Field:
    """A field as it is declared in Python, or by a table as in TOML and over HTTP."""
    if isinstance(given, (Number, Category)):
        return given
    if given in (float, int, bool, "number", "float"):
        return Number()
    if isinstance(given, (list, tuple)):
        return Category(tuple(given))
    if not isinstance(given, Mapping):
        raise InputError(
            f"context {name!r} must be float (over HTTP and in TOML 'number'), a list of names, or "
            f"a table with 'values' or 'default', not {given!r:.60}",
            parameter=name,
        )
    wanted: type[Field] = Category if "values" in given else Number
    tag = wanted.__name__.lower()
    for key in given:
        one_of(f"key of context {name!r}:", str(key), ("type", *wanted.__struct_fields__))
    try:
        return msgspec.convert({"type": tag, **given}, known_type(wanted))
    except msgspec.ValidationError as error:
        raise InputError(f"context {name!r}: {error}", parameter=name) from error
