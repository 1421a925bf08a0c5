"""A table of measurements with one row for every combination of choices."""

import math
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.core.errors import InputError
from submax.core.spaces.space import LISTING_LIMIT
from submax.environments.tables.table_file import first_row, numbers


class DesignTable(NamedTuple):
    """The measured ``value [size]`` of every joint action, in the order of the actions' indices.

    ``columns`` names the slots, and ``choices`` lists the choices of each slot in order.
    """

    columns: tuple[str, ...]
    choices: tuple[tuple[Any, ...], ...]
    value: Floats

    @classmethod
    def of(cls, name: str, table: Any) -> Self:
        """Convert a pyarrow table whose last column is the value and whose others are choices."""
        *columns, last = _columns(name, table)
        found = [_choices(column, table.column(column)) for column in columns]
        choices = tuple(tuple(values.tolist()) for values, _ in found)
        code = np.stack([code for _, code in found], axis=1)
        value = numbers(last, table.column(last))
        order = np.lexsort(code.T[::-1])
        _check_once(columns, choices, code, order)
        _check_all(columns, choices, code[order])
        if value.min() == value.max():
            raise InputError(
                f"all rows of {name} have the value {value[0]:g}, so that no choice is better than "
                f"another: the last column, {last!r}, must hold at least two different values",
                parameter=last,
            )
        return cls(tuple(columns), choices, value[order])


def _columns(name: str, table: Any) -> list[str]:
    """The names of the columns, after a check of the table's rows and columns."""
    columns: list[str] = table.column_names
    if len(columns) < 2:
        raise InputError(
            f"{name} must have at least one column of choices and a last one of values, not the "
            f"columns {columns}"
        )
    for column in columns:
        if columns.count(column) > 1:
            raise InputError(
                f"{name} has more than one column {column!r}, and names must be unique: rename one",
                parameter=column,
            )
    if not 1 <= table.num_rows <= LISTING_LIMIT:
        raise InputError(f"{name} must have 1 to {LISTING_LIMIT} rows, not {table.num_rows}")
    return columns


def _choices(name: str, column: Any) -> tuple[NDArray[Any], Integers]:
    """The distinct values of a column in order, and each row's index among them."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.null_count:
        _refuse_missing(name, first_row(column.is_null()))
    if pa.types.is_nested(column.type):
        raise InputError(
            f"column {name!r} must hold numbers, texts or booleans, not values of the type "
            f"{column.type}",
            parameter=name,
        )
    values = np.asarray(column.to_numpy())
    if np.any(values != values):
        _refuse_missing(name, first_row(values != values))
    distinct, code = np.unique(values, return_inverse=True)
    order = np.array(sorted(range(len(distinct)), key=lambda index: _sort_key(distinct[index])))
    return distinct[order], np.argsort(order)[code]


def _refuse_missing(name: str, row: int) -> NoReturn:
    raise InputError(
        f"column {name!r} has no choice in row {row}, and every row needs one: fill it in or "
        "remove the row",
        parameter=name,
    )


def _sort_key(value: Any) -> tuple[Any, ...]:
    """Texts that are numbers come first, in numerical order; the other texts follow."""
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
    """Refuse a table in which a combination is in several rows; ``order`` is a stable sort."""
    repeats = np.all(code[order[1:]] == code[order[:-1]], axis=1)
    if repeats.any():
        row = int(order[1:][repeats].min())
        raise InputError(
            f"every combination of choices must be in one row, but {repeats.sum()} rows repeat "
            f"another one, the first is row {row + 1} "
            f"({_formatted_combination(columns, choices, code[row])}): average repeated "
            "measurements into one row"
        )


def _check_all(columns: list[str], choices: tuple[tuple[Any, ...], ...], ordered: Integers) -> None:
    """Refuse a table in which a combination is missing."""
    sizes = tuple(map(len, choices))
    missing = math.prod(sizes) - len(ordered)
    if missing:
        expected = _first_combinations(sizes, len(ordered) + 1)
        gap = np.any(expected[:-1] != ordered, axis=1)
        index = int(np.argmax(gap)) if gap.any() else len(ordered)
        raise InputError(
            f"every combination of choices must be in one row, but {missing} of "
            f"{math.prod(sizes)} are missing, the first is "
            f"({_formatted_combination(columns, choices, expected[index])}): add the missing rows, "
            "or leave out a choice that was not measured with all others"
        )


def _first_combinations(sizes: tuple[int, ...], count: int) -> Integers:
    """The first ``count`` combinations in order; listing all of them could exceed the memory."""
    number = np.arange(count)
    combinations = np.empty((count, len(sizes)), dtype=np.int64)
    for slot in reversed(range(len(sizes))):
        number, combinations[:, slot] = np.divmod(number, sizes[slot])
    return combinations


def _formatted_combination(
    columns: list[str], choices: tuple[tuple[Any, ...], ...], code: Integers
) -> str:
    parts = zip(columns, choices, code, strict=True)
    return ", ".join(f"{column} = {values[index]!r}" for column, values, index in parts)
