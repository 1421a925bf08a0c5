"""A design space in which every combination of choices was measured."""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Actions, Floats, Integers
from submax.core.checks import Checked, NonNegative
from submax.core.errors import InputError
from submax.core.optional import require_extra
from submax.core.problem import Problem
from submax.core.rewards import Continuous
from submax.core.spaces import MAX_ENUMERATED_ACTIONS, Slots
from submax.environments.arms import WithNoise
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
        columns: list[str] = table.column_names
        repeated = next((one for one in columns if columns.count(one) > 1), None)
        if len(columns) < 2 or repeated is not None:
            raise InputError(
                f"{name} must have at least one column of choices and a last one of values, all "
                f"with different names, not the columns {columns}",
                parameter=repeated,
            )
        if not 1 <= table.num_rows <= MAX_ENUMERATED_ACTIONS:
            raise InputError(
                f"{name} must have 1 to {MAX_ENUMERATED_ACTIONS} rows, not {table.num_rows}"
            )
        *slots, last = columns
        found = [_choices(slot, table.column(slot)) for slot in slots]
        choices = tuple(tuple(values.tolist()) for values, _ in found)
        value = numbers(last, table.column(last))
        order = _order(slots, choices, [code for _, code in found])
        if value.min() == value.max():
            raise InputError(
                f"all rows of {name} have the value {value[0]:g}, so no choice is better than "
                f"another: the last column, {last!r}, must hold at least two different values",
                parameter=last,
            )
        return cls(tuple(slots), choices, value[order])


def _choices(name: str, column: Any) -> tuple[NDArray[Any], Integers]:
    """The distinct values of a column in order, and each row's index among them."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_nested(column.type):
        raise InputError(
            f"column {name!r} must hold numbers, texts or booleans, not values of the type "
            f"{column.type}",
            parameter=name,
        )
    missing = np.asarray(column.is_null(nan_is_null=True))
    if missing.any():
        raise InputError(
            f"column {name!r} has no choice in row {first_row(missing)}: fill it in or "
            "remove the row",
            parameter=name,
        )
    return np.unique(np.asarray(column.to_numpy()), return_inverse=True)


def _order(
    slots: list[str], choices: tuple[tuple[Any, ...], ...], codes: list[Integers]
) -> Integers:
    """The rows in the order of the joint actions; refuse repeated and missing combinations."""
    sizes, rows = tuple(map(len, choices)), len(codes[0])
    problem = f"{rows} rows are there for {math.prod(sizes)} combinations"
    if math.prod(sizes) <= MAX_ENUMERATED_ACTIONS:
        index = np.ravel_multi_index(codes, sizes)
        count = np.bincount(index, minlength=math.prod(sizes))
        if np.all(count == 1):
            return np.argsort(index)
        wrong = int(np.argmax(count != 1))
        parts = zip(slots, choices, np.unravel_index(wrong, sizes), strict=True)
        combination = ", ".join(f"{slot} = {values[one]!r}" for slot, values, one in parts)
        problem += f", and ({combination}) is there {count[wrong]} times"
    raise InputError(
        f"every combination of choices must be in one row, but {problem}: average repeated "
        "measurements into one row, add missing rows, or leave out a choice that was not measured "
        "with all others"
    )


@dataclass(frozen=True)
class Designs(WithNoise[int]):
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
    noise: NonNegative = 0.0
    minimize: bool = False

    def __post_init__(self) -> None:
        check_file(self.file)
        super().__post_init__()

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
        Checked.__post_init__(made)
        made.__dict__.update(table=DesignTable.of("the table", table))
        return made

    @cached_property
    def table(self) -> DesignTable:
        """The measured table, which is read when it is first needed."""
        return DesignTable.of(Path(self.file).name, read_table(self.file))

    @cached_property
    def worth(self) -> Floats:
        """The mean reward of every design, in the order of the actions' indices."""
        # Subtraction from zero, so a value of 0 does not become −0.
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

    shared = True

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

    def best_reward(self, world: int, context: Floats) -> Floats:
        return np.full(context.shape[:2], self.worth.max())
