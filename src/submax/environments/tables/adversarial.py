"""Rewards that are fixed in advance, decision by decision."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from submax.core.arrays import Actions, Floats
from submax.core.contracts.environment import Environment, Outcome
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.rewards.continuous import Continuous
from submax.core.spaces.arms import Arms
from submax.environments.tables.table_file import check_file, numbers, read_table


class Position(NamedTuple):
    """The number of replicas, and the row of the next decision."""

    replicas: int
    row: int


@dataclass(frozen=True)
class Adversarial(Environment[Position]):
    """The reward of arm a at decision t is the number x_{t,a} of a table.

    ``file`` is a CSV or Parquet file with a row for each decision and a column for each arm. All
    replicas meet the same rewards, and there can be no more decisions than rows. Regret is
    measured against the best arm of every single decision; ``best_fixed_arm`` says how much the
    best single arm earns, with which theory compares.

    >>> environment = Adversarial.of([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> environment.best_fixed_arm(3)
    (1, 2.0)

    Reference: Auer et al. (2002), The nonstochastic multiarmed bandit problem.
    """

    file: str

    def __post_init__(self) -> None:
        check_file(self.file)

    @classmethod
    def of(cls, rewards: ArrayLike) -> Self:
        """An environment of rewards ``[T, K]`` in memory; its ``file`` is a digest of them."""
        table = np.array(rewards, dtype=np.float64)
        if table.ndim != 2 or table.size == 0 or not np.isfinite(table).all():
            raise InputError(
                "rewards must be finite numbers [T, K], a row for each decision and a column for "
                f"each arm, not of shape {table.shape}",
                parameter="rewards",
            )
        made = object.__new__(cls)
        name = hashlib.sha256(table.tobytes()).hexdigest()[:16]
        made.__dict__.update(file=f"array {name}", rewards=table)
        return made

    @cached_property
    def rewards(self) -> Floats:
        """The rewards of all arms at all decisions, ``[T, K]``."""
        table = read_table(self.file)
        columns = [numbers(name, table[name]) for name in table.column_names]
        if not columns or not len(columns[0]):
            raise InputError(f"{self.file!r} has no rewards: give it a row for each decision")
        return np.stack(columns, axis=1)

    def best_fixed_arm(self, decisions: int) -> tuple[int, float]:
        """Return the arm with the highest sum of the first rewards, and this sum."""
        sums = self.rewards[:decisions].sum(axis=0)
        return int(sums.argmax()), float(sums.max())

    @property
    def problem(self) -> Problem:
        low, high = float(self.rewards.min()), float(self.rewards.max())
        scale = Continuous(low, high) if low < high else Continuous()
        return Problem(Arms(self.rewards.shape[1]), scale=scale)

    @property
    def most_decisions(self) -> int:
        return len(self.rewards)

    @property
    def shared(self) -> bool:
        return True

    def reset(self, replicas: int, rng: np.random.Generator) -> Position:
        return Position(replicas, 0)

    def advance(self, world: Position, count: int, rng: np.random.Generator) -> Position:
        return Position(world.replicas, world.row + count)

    def contexts(self, world: Position, count: int, rng: np.random.Generator) -> Floats:
        return np.zeros((world.replicas, count, 0))

    def mean_reward(self, world: Position, context: Floats, action: Actions) -> Floats:
        return self._row(world)[action[..., 0]]

    def reward(
        self, world: Position, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Floats:
        return self.mean_reward(world, context, action)

    def outcome(
        self, world: Position, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Outcome:
        reward = self.mean_reward(world, context, action)
        return Outcome(reward, reward)

    def best_reward(self, world: Position, context: Floats) -> Floats:
        return np.full(context.shape[:2], self._row(world).max())

    def _row(self, world: Position) -> Floats:
        # After the last decision of a run the world moves on once more.
        row: Floats = self.rewards[min(world.row, len(self.rewards) - 1)]
        return row
