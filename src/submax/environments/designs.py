"""A design space in which every combination of choices was measured."""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Actions, Floats, Integers
from submax.core.checks import non_negative
from submax.core.environment import Environment, Outcome
from submax.core.errors import InputError
from submax.core.optional import require_extra
from submax.core.problem import Problem
from submax.core.rewards import Continuous
from submax.core.spaces import MAX_ENUMERATED_ACTIONS, Slots
from submax.environments.tables import check_file, first_row, numbers, read_table


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
    if not 1 <= table.num_rows <= MAX_ENUMERATED_ACTIONS:
        raise InputError(
            f"{name} must have 1 to {MAX_ENUMERATED_ACTIONS} rows, not {table.num_rows}"
        )
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


@dataclass(frozen=True)
class Designs(Environment[int]):
    """The reward of a design is its measured value: y(a) + σ ε, or −y(a) + σ ε with ``minimize``.

    ``file`` is a CSV or Parquet file with one row for every combination of choices. Its last
    column is the measured value y; every other column is a slot, whose choices are the column's
    distinct values in sorted order. σ is ``noise``, ε is normal. There are no contexts, and all
    replicas share the same truth; the world is the number of replicas.

    >>> speed = {"level": [1, 1, 2, 2], "fast": [False, True, False, True], "time": [4, 3, 5, 1]}
    >>> environment = Designs.of(speed, minimize=True)
    >>> environment.problem.space, environment.best_reward(1, np.zeros((1, 1, 0)))
    (Slots(sizes=(2, 2)), array([[-1.]]))
    >>> environment.describe(np.array([1, 1]))
    {'level': 2, 'fast': True}
    """

    file: str
    noise: float = 0.0
    minimize: bool = False

    def __post_init__(self) -> None:
        check_file(self.file)
        self._check_rest()

    @classmethod
    def of(cls, columns: Mapping[str, Any], noise: float = 0.0, minimize: bool = False) -> Self:
        """An environment of columns that are in memory, the last one the measured value.

        Its ``file`` is a digest of the columns instead of a file's name.
        """
        require_extra("logs", "a table of designs", "pyarrow")
        import pyarrow as pa

        try:
            table = pa.table(dict(columns))
        except (TypeError, ValueError, pa.ArrowException) as error:
            raise InputError(
                "the columns must be lists or arrays of equal length, by name, and cannot be made "
                f"into a table: {error}",
                parameter="columns",
            ) from error
        digest = hashlib.sha256(repr(list(table.to_pydict().items())).encode())
        name = f"columns {digest.hexdigest()[:16]}"
        made = object.__new__(cls)
        made.__dict__.update(file=name, noise=noise, minimize=minimize)
        made._check_rest()
        made.__dict__.update(table=DesignTable.of("the table", table))
        return made

    @cached_property
    def table(self) -> DesignTable:
        """The measured table, which is read when it is first needed."""
        return DesignTable.of(Path(self.file).name, read_table(self.file))

    @cached_property
    def worth(self) -> Floats:
        """The mean reward of every design, in the order of the actions' indices."""
        # Subtraction from zero, so that a value of 0 does not become −0.
        return 0.0 - self.table.value if self.minimize else self.table.value

    @cached_property
    def space(self) -> Slots:
        """The space of actions, with one slot for each column of choices."""
        return Slots(tuple(map(len, self.table.choices)))

    @property
    def problem(self) -> Problem:
        # Without noise the rewards lie between the lowest and the highest measured value.
        if self.noise:
            return Problem(self.space, scale=Continuous())
        low, high = float(self.worth.min()), float(self.worth.max())
        return Problem(self.space, scale=Continuous(low, high))

    @property
    def shared(self) -> bool:
        return True

    def describe(self, action: Actions) -> dict[str, Any]:
        """The values of the choices of one action ``[S]``, by column."""
        Problem(self.space).check_action(action)
        parts = zip(self.table.columns, self.table.choices, action, strict=True)
        return {column: values[index] for column, values, index in parts}

    def reset(self, replicas: int, rng: np.random.Generator) -> int:
        return replicas

    def contexts(self, world: int, count: int, rng: np.random.Generator) -> Floats:
        return np.zeros((world, count, 0))

    def mean_reward(self, world: int, context: Floats, action: Actions) -> Floats:
        return self.worth.take(self.space.index(action))

    def reward(
        self, world: int, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Floats:
        return self.outcome(world, context, action, rng).reward

    def outcome(
        self, world: int, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Outcome:
        mean = self.mean_reward(world, context, action)
        return Outcome(mean + self.noise * rng.standard_normal(mean.shape), mean)

    def best_reward(self, world: int, context: Floats) -> Floats:
        return np.full(context.shape[:2], self.worth.max())

    def _check_rest(self) -> None:
        non_negative("noise", self.noise)
        if not isinstance(self.minimize, bool):
            raise InputError(
                f"minimize must be true or false, without quotes, not {self.minimize!r}",
                parameter="minimize",
            )
