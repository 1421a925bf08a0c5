"""Values of tables, such as those of TOML files, as values of the fields of a dataclass."""

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any

from submax.core.checks import one_of
from submax.core.errors import InputError


def required(field: "dataclasses.Field[Any]") -> bool:
    """Whether a field of a dataclass has no default."""
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def converted(where: str, value: Any, wanted: Any) -> Any:
    """The value for a field of type ``wanted``, or an error.

    If that is wanted, an int becomes a float, a float without fraction an int, a list a tuple and
    a table a record; any other value must have the type already.
    """
    origin, options = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (typing.Union, types.UnionType):
        return _first_that_fits(where, value, options)
    if wanted is Any or (origin is typing.Literal and value in options):
        return value
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if wanted is int and isinstance(value, float) and value.is_integer():
        # TOML writes a million as 1e6, which is a float.
        return int(value)
    if dataclasses.is_dataclass(wanted) and isinstance(value, Mapping):
        return _record(where, value, wanted)
    if origin is tuple and isinstance(value, list):
        return tuple(converted(where, item, options[0]) for item in value)
    if origin is tuple and not isinstance(value, tuple):
        raise InputError(
            f"{where} must be a list, not {value!r}; if a list stands for several "
            "configurations, write a list within a list, [[...]]",
            parameter=_name(where),
        )
    plain = origin or wanted
    is_type = isinstance(plain, type) and isinstance(value, plain)
    if not is_type or (isinstance(value, bool) and plain is not bool):
        name = getattr(plain, "__name__", str(wanted))
        raise InputError(f"{where} must be of type {name}, not {value!r}", parameter=_name(where))
    return value


def _name(where: str) -> str:
    """The name of a field, with which the place of a value begins."""
    return where.partition(" of ")[0]


def _record(where: str, table: Mapping[str, Any], wanted: Any) -> Any:
    """A dataclass that is no registered class, such as ``Training``, from a table of its fields."""
    hints = typing.get_type_hints(wanted)
    for key in table:
        one_of(f"key of {where}:", key, hints)
    return wanted(
        **{key: converted(f"{key} of {where}", value, hints[key]) for key, value in table.items()}
    )


def _first_that_fits(where: str, value: Any, options: tuple[Any, ...]) -> Any:
    for option in options:
        try:
            return converted(where, value, option)
        except InputError:
            continue
    names = " or ".join(map(_type_name, options))
    raise InputError(f"{where} must be of type {names}, not {value!r}", parameter=_name(where))


def _type_name(option: Any) -> str:
    """The name of a type; of a literal its values."""
    if typing.get_origin(option) is typing.Literal:
        return " or ".join(map(repr, typing.get_args(option)))
    return str(getattr(option, "__name__", option))
