"""Adversarial bandits: exponential weights, and rewards that are fixed in advance."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
import scipy
from numpy.typing import ArrayLike

from submax.core.arrays import Actions, Floats
from submax.core.checks import Positive
from submax.core.errors import InputError
from submax.core.numerics import tally
from submax.core.policy import PolicyTraits, TabularPolicy
from submax.core.problem import Feedback, Problem
from submax.core.rewards import Continuous
from submax.core.serialization import serializable
from submax.core.spaces import Arms, Choices
from submax.environments.arms import DrawnFromMean
from submax.environments.tables import check_file, numbers, read_table
from submax.policies.arm_statistics import kept_columns


@serializable("exponential-weights-state")
class ExponentialWeightsState(NamedTuple):
    """``estimate [R, A]``, estimated sums for every arm, and ``observed [R]`` rows so far."""

    problem: Problem
    estimate: Floats
    observed: Floats

    def restricted(self, choices: Choices) -> Self:
        return kept_columns(self, choices, "estimate")


@dataclass(frozen=True)
class EXP3IX(TabularPolicy[ExponentialWeightsState]):
    """Draw from π(a) ∝ exp(−η_t L̂_a), with losses ℓ̂ = ℓ / (π + γ_t) that are biased downwards.

    η_t = s √(2 ln K / (K t)) and γ_t = η_t / 2, with K arms, t the number of rows so far and s the
    ``learning_rate``. ℓ = 1 − r is the loss, r the reward scaled to 0 … 1. The bias γ keeps the
    estimates small, so the regret is bounded with high probability without uniform
    exploration. The probability of every action at the time of its decision must be known, also if
    its reward comes late.

    Reference: Neu (2015), Explore no more: improved high-probability regret bounds for
    non-stochastic bandits, algorithm 1 with the anytime parameters of corollary 1.
    """

    learning_rate: Positive = 1.0

    traits = PolicyTraits(uses_context=False, needs_propensities=True)

    def init(
        self, problem: Problem, replicas: int, rng: np.random.Generator
    ) -> ExponentialWeightsState:
        problem.scale.known_bounds("the exp3-ix policy")
        problem.space.check_listable("the exp3-ix policy")
        shape = (replicas, problem.space.size)
        return ExponentialWeightsState(problem, np.zeros(shape), np.zeros(replicas))

    def probabilities(self, state: ExponentialWeightsState, context: Floats) -> Floats:
        rate = self._rate(state.observed + 1, state.estimate.shape[1])
        return scipy.special.softmax(-rate[:, None] * state.estimate, axis=-1)[:, None]

    def update(
        self, state: ExponentialWeightsState, feedback: Feedback, rng: np.random.Generator
    ) -> ExponentialWeightsState:
        feedback.check(state.problem)
        if feedback.log_prob is None:
            raise InputError(
                "the exp3-ix policy needs log_prob, the log-probability with which each action was "
                "chosen, and feedback has none: pass that of act"
            )
        there = feedback.weight > 0
        low, high = state.problem.scale.known_bounds("the exp3-ix policy")
        loss = 1 - np.where(there, (feedback.reward - low) / (high - low), 0.0)
        probability = np.exp(np.where(there, feedback.log_prob, 0.0))
        size = state.estimate.shape[1]
        # The number of each row, counted from 1; absent rows are not counted.
        number = state.observed[:, None] + np.cumsum(there, axis=1)
        bias = self._rate(np.maximum(number, 1.0), size) / 2
        terms = np.where(there, feedback.weight * loss / (probability + bias), 0.0)
        index = np.where(there, state.problem.space.index(feedback.action), 0)
        return state._replace(
            estimate=state.estimate + tally(index, terms, size),
            observed=state.observed + there.sum(axis=1),
        )

    def _rate(self, number: Floats, arms: int) -> Floats:
        return self.learning_rate * np.sqrt(2 * np.log(max(arms, 2)) / (arms * number))


class Position(NamedTuple):
    """The number of replicas, and the row of the next decision."""

    replicas: int
    row: int


@dataclass(frozen=True)
class Adversarial(DrawnFromMean[Position]):
    """The reward of arm a at decision t is the number x_{t,a} of a table.

    ``file`` is a CSV or Parquet file with a row for each decision and a column for each arm. All
    replicas meet the same rewards, and there can be no more decisions than rows. Regret is
    measured against the best arm of every single decision. Theory compares with the best single
    arm, which earns the highest sum of a column of ``rewards``.

    >>> environment = Adversarial.of([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    >>> environment.rewards.sum(axis=0).tolist()
    [1.0, 2.0]

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

    @property
    def problem(self) -> Problem:
        low, high = float(self.rewards.min()), float(self.rewards.max())
        scale = Continuous(low, high) if low < high else Continuous()
        return Problem(Arms(self.rewards.shape[1]), scale=scale)

    @property
    def most_decisions(self) -> int:
        return len(self.rewards)

    shared = True

    def reset(self, replicas: int, rng: np.random.Generator) -> Position:
        return Position(replicas, 0)

    def advance(self, world: Position, count: int, rng: np.random.Generator) -> Position:
        return Position(world.replicas, world.row + count)

    def contexts(self, world: Position, count: int, rng: np.random.Generator) -> Floats:
        return np.zeros((world.replicas, count, 0))

    def mean_reward(self, world: Position, context: Floats, action: Actions) -> Floats:
        return self._row(world)[action[..., 0]]

    def draw(self, mean: Floats, rng: np.random.Generator) -> Floats:
        return mean

    def best_reward(self, world: Position, context: Floats) -> Floats:
        return np.full(context.shape[:2], self._row(world).max())

    def _row(self, world: Position) -> Floats:
        # After the last decision of a run the world moves on once more.
        return self.rewards[min(world.row, len(self.rewards) - 1)]
