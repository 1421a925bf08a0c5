"""A table with one row for every combination of choices."""

import math
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.core.errors import InputError
from submax.core.spaces.space import LISTING_LIMIT
from submax.environments.tables.table_file import first_row, numbers


class DesignTable(NamedTuple):
    """What was measured: ``value [size]``, in the order of the actions' numbers.

    ``columns`` names the slots and ``choices`` lists those of each, in order.
    """

    columns: tuple[str, ...]
    choices: tuple[tuple[Any, ...], ...]
    value: Floats

    @classmethod
    def of(cls, name: str, table: Any) -> Self:
        """Make it from a pyarrow table; its last column is the value, the others are choices."""
        *columns, last = _columns(name, table)
        found = [_choices(column, table.column(column)) for column in columns]
        choices = tuple(tuple(values.tolist()) for values, _ in found)
        code = np.stack([code for _, code in found], axis=1)
        value = numbers(last, table.column(last))
        order = np.lexsort(code.T[::-1])
        _check_once(columns, choices, code, order)
        _check_all(columns, choices, code[order])
        if value.min() == value.max():
            raise InputError(f"there is nothing to choose: all of {name} is worth {value[0]:g}")
        return cls(tuple(columns), choices, value[order])


def _columns(name: str, table: Any) -> list[str]:
    """The names of the columns, of a table that has as many rows and columns as it must."""
    columns: list[str] = table.column_names
    if len(columns) < 2:
        raise InputError(f"{name} must have a column of choices and one of values, not {columns}")
    for column in columns:
        if columns.count(column) > 1:
            raise InputError(f"{name} has more than one column {column!r}")
    if not 1 <= table.num_rows <= LISTING_LIMIT:
        raise InputError(f"{name} must have 1 to {LISTING_LIMIT} rows, not {table.num_rows}")
    return columns


def _choices(name: str, column: Any) -> tuple[NDArray[Any], Integers]:
    """The distinct values in order, and each row's position among them."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.null_count:
        row = first_row(column.is_null())
        raise InputError(f"column {name!r} has no choice in row {row}")
    if pa.types.is_nested(column.type):
        raise InputError(f"column {name!r} must hold plain values, not those of {column.type}")
    values = np.asarray(column.to_numpy())
    if np.any(values != values):
        raise InputError(f"column {name!r} has no choice in row {first_row(values != values)}")
    distinct, code = np.unique(values, return_inverse=True)
    order = np.array(sorted(range(len(distinct)), key=lambda place: _rank(distinct[place])))
    return distinct[order], np.argsort(order)[code]


def _rank(value: Any) -> tuple[Any, ...]:
    """Numbers that were read as text come first and are sorted as numbers."""
    if not isinstance(value, str):
        return (value,)
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    return (1, 0.0, value) if math.isnan(number) else (0, number, value)


def _check_once(
    columns: list[str], choices: tuple[tuple[Any, ...], ...], code: Integers, order: Integers
) -> None:
    """Refuse a combination that stands in several rows; sorting kept the order of equal rows."""
    repeats = np.all(code[order[1:]] == code[order[:-1]], axis=1)
    if repeats.any():
        row = int(order[1:][repeats].min())
        raise InputError(
            "every combination of choices must be there once; rows that repeat another: "
            f"{repeats.sum()}, the first is row {row + 1} ({_told(columns, choices, code[row])})"
        )


def _check_all(columns: list[str], choices: tuple[tuple[Any, ...], ...], ordered: Integers) -> None:
    """Refuse a table without some combination."""
    sizes = tuple(map(len, choices))
    missing = math.prod(sizes) - len(ordered)
    if missing:
        expected = _first_combinations(sizes, len(ordered) + 1)
        gap = np.any(expected[:-1] != ordered, axis=1)
        place = int(np.argmax(gap)) if gap.any() else len(ordered)
        raise InputError(
            "every combination of choices must be there once; missing ones: "
            f"{missing} of {math.prod(sizes)}, the first is "
            f"({_told(columns, choices, expected[place])})"
        )


def _first_combinations(sizes: tuple[int, ...], count: int) -> Integers:
    """The first combinations in order; the whole number of them may be beyond a machine's."""
    number = np.arange(count)
    combinations = np.empty((count, len(sizes)), dtype=np.int64)
    for slot in reversed(range(len(sizes))):
        number, combinations[:, slot] = np.divmod(number, sizes[slot])
    return combinations


def _told(columns: list[str], choices: tuple[tuple[Any, ...], ...], code: Integers) -> str:
    parts = zip(columns, choices, code, strict=True)
    return ", ".join(f"{column} = {values[place]!r}" for column, values, place in parts)
