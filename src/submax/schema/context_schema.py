"""The declared context of a decision."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats
from submax.core.checks import finite, one_of
from submax.core.errors import InputError
from submax.schema.names import check_name, short_repr

MOST_CATEGORIES = 10_000
MOST_FIELDS = 1000
LARGEST = 1e30
"""Numbers beyond this lose their meaning in single precision."""

Value = float | str


def as_number(value: object) -> float | None:
    """A number of Python or numpy, truth values included; None where it is none or too large."""
    known = isinstance(value, (float, int, np.integer, np.floating, np.bool_))
    return float(value) if known and -LARGEST <= value <= LARGEST else None  # type: ignore[operator, arg-type]  # a number


class Number(msgspec.Struct, frozen=True, tag="number"):
    """A finite number; where it is missing, the ``default``, or an error if there is none."""

    default: float | None = None

    def check(self, name: str) -> None:
        """Refuse a default that is no number."""
        if self.default is not None:
            finite(f"the default of {name!r}", self.default)

    def clean(self, name: str, value: object) -> Value:
        """The number, or one sentence."""
        number = as_number(value)
        if number is None:
            raise InputError(
                f"context {name!r} must be a number from {-LARGEST:g} to {LARGEST:g}, "
                f"not {short_repr(value)}"
            )
        return number

    @property
    def width(self) -> int:
        """One number."""
        return 1

    def encode(self, value: Value) -> Sequence[float]:
        """As it is."""
        return (float(value),)


class Category(msgspec.Struct, frozen=True, tag="category"):
    """One of ``values``; where it is missing or another, the ``default``, or an error."""

    values: tuple[str, ...]
    default: str | None = None

    def check(self, name: str) -> None:
        """Refuse values that are no set of names."""
        if (
            not isinstance(self.values, (list, tuple))
            or not 0 < len(self.values) <= MOST_CATEGORIES
        ):
            raise InputError(
                f"the categories of {name!r} must be a list of 1 to {MOST_CATEGORIES} names"
            )
        for value in self.values:
            check_name(f"a category of {name!r}", value)
        if len(set(self.values)) < len(self.values):
            raise InputError(f"a category of {name!r} is named twice")
        if self.default is not None and self.default not in self.values:
            raise InputError(f"the default of {name!r} must be one of its categories")

    def clean(self, name: str, value: object) -> Value:
        """The category, or one sentence."""
        if isinstance(value, str) and value in self.values:
            # A text of numpy is not plain enough to be written down.
            return str(value)
        if self.default is not None:
            return self.default
        raise InputError(
            f"context {name!r} must be one of {', '.join(self.values)[:200]}, not {value!r:.60}"
        )

    @property
    def width(self) -> int:
        """One number for each category."""
        return len(self.values)

    def encode(self, value: Value) -> Sequence[float]:
        """One at the category, else zero."""
        row = [0.0] * len(self.values)
        row[self.values.index(str(value))] = 1.0
        return row


Field = Number | Category


class ContextSchema(msgspec.Struct, frozen=True):
    """Named numbers and categories, in a fixed order."""

    names: tuple[str, ...] = ()
    fields: tuple[Field, ...] = ()

    @classmethod
    def of(cls, context: object) -> "ContextSchema":
        """From ``{"country": ["fr", "de"], "age": float}``, or with fields that have a default."""
        if context is None:
            return cls()
        if not isinstance(context, Mapping) or len(context) > MOST_FIELDS:
            raise InputError(
                f"context must be a table of at most {MOST_FIELDS} fields such as "
                f"{{'country': ['fr', 'de'], 'age': float}}, not {context!r:.60}"
            )
        fields = []
        for name, given in context.items():
            check_name("the name of a context field", name)
            fields.append(_field(name, given))
            fields[-1].check(name)
        return cls(tuple(context), tuple(fields))

    @property
    def width(self) -> int:
        """How many numbers a context is encoded as."""
        return sum(field.width for field in self.fields)

    @property
    def numeric(self) -> list[bool]:
        """Which of these are numbers, not categories."""
        return [isinstance(field, Number) for field in self.fields for _ in range(field.width)]

    def clean(self, context: object) -> list[Value]:
        """The values in order, each as declared; what is unknown or missing follows its rule."""
        if context is None:
            context = {}
        if not isinstance(context, Mapping):
            raise InputError(f"a context is a table of values, not {context!r:.60}")
        cleaned = [
            self._value(name, field, context)
            for name, field in zip(self.names, self.fields, strict=True)
        ]
        if len(context) > len(self.names) or any(name not in self.names for name in context):
            stranger = next(name for name in context if name not in self.names)
            declared = ", ".join(self.names) or "none"
            raise InputError(
                f"the context field {stranger!r:.60} is not declared; declared: {declared}"
            )
        return cleaned

    def _value(self, name: str, field: Field, context: Mapping[str, Any]) -> Value:
        value = context.get(name)
        if value is not None:
            return field.clean(name, value)
        if field.default is None:
            raise InputError(f"context {name!r} is missing, and it has no default")
        return field.default

    def encode(self, values: Sequence[Value]) -> Floats:
        """The numbers a policy sees, ``[D]``."""
        row: list[float] = []
        for field, value in zip(self.fields, values, strict=True):
            row.extend(field.encode(value))
        return np.array(row)

    def encode_rows(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """The same for many rows ``[n, F]``, in which a category is its place: ``[n, D]``."""
        encoded = np.zeros((len(values), self.width), dtype=np.float32)
        row, first = np.arange(len(values)), 0
        for place, field in enumerate(self.fields):
            if isinstance(field, Category):
                encoded[row, first + values[:, place].astype(np.int64)] = 1.0
            else:
                encoded[:, first] = values[:, place]
            first += field.width
        return encoded


def _field(name: str, given: object) -> Field:
    if isinstance(given, (Number, Category)):
        return given
    if given in (float, int, bool, "number", "float"):
        return Number()
    if isinstance(given, (list, tuple)):
        if given and all(as_number(one) is not None for one in given):
            raise InputError(
                f"context {name!r} must be a list of names, not {given!r:.60}: of numbers, say "
                "float (over HTTP and in TOML 'number')"
            )
        return Category(tuple(given))
    if isinstance(given, Mapping):
        return _from_table(name, given)
    raise InputError(
        f"context {name!r} must be float, a list of categories, or a table with 'values' or "
        f"'default', not {given!r:.60}"
    )


def _from_table(name: str, table: Mapping[Any, Any]) -> Field:
    """As it comes over HTTP."""
    wanted: type[Field] = Category if "values" in table else Number
    plain = {key: value for key, value in table.items() if key != "type"}
    if table.get("type", wanted.__name__.lower()) != wanted.__name__.lower():
        raise InputError(f"context {name!r}: a category has 'values', and a number has none")
    for key in plain:
        one_of(f"key of context {name!r}:", str(key), wanted.__struct_fields__)
    try:
        return msgspec.convert({"type": wanted.__name__.lower(), **plain}, wanted)
    except msgspec.ValidationError as error:
        raise InputError(f"context {name!r}: {error}") from error
