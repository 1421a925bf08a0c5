"""A design space in which every combination of choices was measured."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.checks import non_negative
from submax.core.contracts.environment import Environment, Outcome
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.rewards.continuous import Continuous
from submax.core.running.extras import require_extra
from submax.core.spaces.slots import Slots
from submax.environments.tables.design_table import DesignTable
from submax.environments.tables.table_file import check_file, read_table


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
