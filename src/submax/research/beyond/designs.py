"""A design space in which every combination of choices was measured."""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

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
        *slots, last = columns = [*table.column_names] or [""]
        repeated = next((one for one in columns if columns.count(one) > 1), None)
        if not slots or repeated is not None:
            raise InputError(
                f"{name} must have at least one column of choices and a last one of values, all "
                f"with different names, not the columns {columns}",
                parameter=repeated,
            )
        if not 1 <= table.num_rows <= MAX_ENUMERATED_ACTIONS:
            raise InputError(
                f"{name} must have 1 to {MAX_ENUMERATED_ACTIONS} rows, not {table.num_rows}"
            )
        choices, codes = zip(*(_choices(slot, table[slot]) for slot in slots), strict=True)
        value, sizes = numbers(last, table[last]), tuple(map(len, choices))
        combinations = np.stack(codes, axis=1)
        if table.num_rows != math.prod(sizes) or len(np.unique(combinations, axis=0)) < len(value):
            raise InputError(
                f"every combination of choices must be in one row, but {len(value)} rows are there "
                f"for {math.prod(sizes)} combinations: average repeated measurements into one row, "
                "add missing rows, or leave out a choice that was not measured with all others"
            )
        if value.min() == value.max():
            raise InputError(
                f"all rows of {name} have the value {value[0]:g}, so no choice is better than "
                f"another: the last column, {last!r}, must hold at least two different values",
                parameter=last,
            )
        return cls(tuple(slots), choices, value[np.lexsort(combinations.T[::-1])])


def _choices(name: str, column: Any) -> tuple[tuple[Any, ...], Integers]:
    """The distinct values of a column in order, and each row's index among them."""
    missing = np.asarray(column.is_null(nan_is_null=True))
    if missing.any():
        raise InputError(
            f"column {name!r} has no choice in row {first_row(missing)}: fill it in or "
            "remove the row",
            parameter=name,
        )
    if column.type.num_fields:
        raise InputError(
            f"column {name!r} must hold numbers, texts or booleans, not values of the type "
            f"{column.type}",
            parameter=name,
        )
    values, code = np.unique(column.to_pylist(), return_inverse=True)
    return tuple(values.tolist()), code


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
