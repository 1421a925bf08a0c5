"""Arms whose rewards were recorded in a log."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from submax.core.arrays import Actions, Floats, Integers
from submax.core.contracts.environment import Environment, Outcome
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.rewards.binary import Binary
from submax.core.rewards.continuous import Continuous
from submax.core.rewards.scale import Scale
from submax.core.spaces.arms import Arms
from submax.environments.tables.table_file import check_file, numbers, read_table


class RewardsByArm(NamedTuple):
    """The recorded rewards, sorted by arm: arm a has ``rows[a]`` of them from ``first[a]`` on."""

    names: list[Any]
    rewards: Floats
    first: Integers
    rows: Integers


@dataclass(frozen=True)
class RecordedRewards(Environment[int]):
    """A pull of an arm gives one of the rewards that were recorded for the arm, drawn at random.

    ``file`` is a CSV or Parquet file with a row for each recorded decision; ``action`` and
    ``reward`` name its columns. Arms are the distinct actions in sorted order. Rewards are drawn
    with replacement, so that the mean reward of an arm is the mean of its rows. All replicas share
    this truth; the world is their number. Contexts are not used: a log with contexts is evaluated
    by `submax.evaluation`.

    >>> log = RecordedRewards.of(["left", "right", "left"], [1.0, 0.0, 0.0])
    >>> log.names, log.problem.scale
    (['left', 'right'], Binary())
    """

    file: str
    action: str = "action"
    reward_column: str = "reward"

    def __post_init__(self) -> None:
        check_file(self.file)
        for name in ("action", "reward_column"):
            if not isinstance(getattr(self, name), str):
                raise InputError(
                    f"{name} must be the name of a column, not {getattr(self, name)!r}"
                )

    @classmethod
    def of(cls, actions: Sequence[Any], rewards: ArrayLike) -> Self:
        """An environment of a log in memory; its ``file`` is a digest of the log."""
        values = np.asarray(rewards, dtype=np.float64)
        if len(actions) != values.size or not values.size or not np.isfinite(values).all():
            raise InputError(
                f"actions and rewards must be equally many, and at least one finite reward, not "
                f"{len(actions)} actions and rewards of shape {values.shape}"
            )
        digest = hashlib.sha256(repr(list(actions)).encode() + values.tobytes()).hexdigest()
        made = object.__new__(cls)
        made.__dict__.update(file=f"log {digest[:16]}", action="action", reward_column="reward")
        made.__dict__.update(by_arm=_by_arm(list(actions), values))
        return made

    @cached_property
    def by_arm(self) -> RewardsByArm:
        """The recorded rewards of all arms."""
        table = read_table(self.file)
        for name in (self.action, self.reward_column):
            if name not in table.column_names:
                columns = ", ".join(table.column_names)
                raise InputError(
                    f"{self.file!r} has no column {name!r}, its columns are {columns}: name two of "
                    "them by action and reward_column",
                    parameter=name,
                )
        values = numbers(self.reward_column, table[self.reward_column])
        return _by_arm(table[self.action].to_pylist(), values)

    @property
    def names(self) -> list[Any]:
        """The recorded action of each arm."""
        return self.by_arm.names

    @property
    def problem(self) -> Problem:
        rewards = self.by_arm.rewards
        scale: Scale = Binary() if Binary().contains(rewards).all() else Continuous()
        return Problem(Arms(len(self.names)), scale=scale)

    @property
    def shared(self) -> bool:
        return True

    def reset(self, replicas: int, rng: np.random.Generator) -> int:
        return replicas

    def contexts(self, world: int, count: int, rng: np.random.Generator) -> Floats:
        return np.zeros((world, count, 0))

    def mean_reward(self, world: int, context: Floats, action: Actions) -> Floats:
        return self._means[action[..., 0]]

    def reward(
        self, world: int, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Floats:
        return self.outcome(world, context, action, rng).reward

    def outcome(
        self, world: int, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Outcome:
        log, arm = self.by_arm, action[..., 0]
        place = log.first[arm] + rng.integers(log.rows[arm])
        return Outcome(log.rewards[place], self._means[arm])

    def best_reward(self, world: int, context: Floats) -> Floats:
        return np.full(context.shape[:2], self._means.max())

    @cached_property
    def _means(self) -> Floats:
        log = self.by_arm
        means: Floats = np.add.reduceat(log.rewards, log.first) / log.rows
        return means


def _by_arm(actions: list[Any], rewards: Floats) -> RewardsByArm:
    try:
        names, arm = np.unique(np.asarray(actions), return_inverse=True)
    except TypeError as error:
        raise InputError(f"the actions of a log must be of one type: {error}") from error
    count = np.bincount(arm)
    first = np.concatenate([[0], np.cumsum(count)[:-1]]).astype(np.int64)
    return RewardsByArm(names.tolist(), rewards[np.argsort(arm, kind="stable")], first, count)
