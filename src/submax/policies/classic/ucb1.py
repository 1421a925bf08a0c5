"""Upper confidence bounds for plain arms."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Actions, Floats, Integers
from submax.core.checks import non_negative
from submax.core.contracts.decision import Decision
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.policy import Policy
from submax.core.contracts.problem import Problem
from submax.core.numerics.tally import tally
from submax.core.rewards.scale import Scale
from submax.core.running.stored import stored
from submax.policies.classic.arm_statistics import ArmStatistics


@stored("ucb1-state")
class UCB1State(NamedTuple):
    """The statistics of all arms, and the number of ``pending [R, A]`` pulls without reward yet."""

    problem: Problem
    arms: ArmStatistics
    pending: Floats


@dataclass(frozen=True)
class UCB1(Policy[UCB1State]):
    """Take the arm with the highest upper confidence bound, mean + √(c ln t / n).

    n is the number of pulls of the arm, t that of all arms, c is ``exploration``. If the bounds of
    rewards are known, the mean is divided by their difference. Arms that were never pulled come
    first, and the lowest index wins a tie. By default only pulls whose rewards have come back
    count, so that decisions taken together all take the same arm. If ``pending`` is true, n and t
    also count pulls whose rewards are pending, which spreads these decisions over the arms.

    Reference: Auer et al. (2002).
    """

    pending: bool = False
    exploration: float = 2.0

    def __post_init__(self) -> None:
        non_negative("exploration", self.exploration)

    @property
    def facts(self) -> Facts:
        return Facts(uses_context=False)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> UCB1State:
        arms = ArmStatistics.empty(problem, replicas)
        return UCB1State(problem, arms, np.zeros_like(arms.pulls))

    def act(self, state: UCB1State, context: Floats, rng: np.random.Generator) -> Decision:
        index = self._choices(state, context.shape[1])
        return Decision(state.problem.space.action(index), np.zeros(index.shape))

    def log_prob(self, state: UCB1State, context: Floats, action: Integers) -> Floats:
        taken = self._choices(state, context.shape[1]) == state.problem.space.index(action)
        return np.where(taken, 0.0, -np.inf)

    def probabilities(self, state: UCB1State, context: Floats) -> Floats:
        taken = self._choices(state, context.shape[1])
        return np.eye(state.problem.space.size)[taken]

    def record(
        self, state: UCB1State, action: Actions | None = None, *, upcoming: int | None = None
    ) -> UCB1State:
        if not self.pending or action is None:
            return state
        return state._replace(pending=state.pending + _pulls(state, action))

    def update(self, state: UCB1State, feedback: Feedback, rng: np.random.Generator) -> UCB1State:
        arms = state.arms.add(feedback)
        returned = tally(
            state.problem.space.index(feedback.action),
            (feedback.weight > 0).astype(np.float64),
            arms.pulls.shape[-1],
        )
        return UCB1State(state.problem, arms, np.maximum(state.pending - returned, 0.0))

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """With and without pending pulls."""
        yield cls()
        yield cls(pending=True)
        yield cls(exploration=0.0)

    @classmethod
    def presets(cls) -> Mapping[str, Self]:
        """Both variants of the comparison."""
        return {"ucb1": cls(), "ucb1-pending": cls(pending=True)}

    def _choices(self, state: UCB1State, count: int) -> Integers:
        """The arms of ``count`` decisions taken together: ``[R, count]``."""
        pulls = state.arms.pulls + state.pending
        means = state.arms.means() / _span(state.problem.scale)
        total = pulls.sum(axis=-1)
        width = self._width(pulls)
        if not self.pending:
            return np.repeat(self._best(means, width, total)[:, None], count, axis=1)
        choices = np.empty((len(pulls), count), dtype=np.int64)
        replica = np.arange(len(pulls))
        for column in range(count):
            arm = self._best(means, width, total + column)
            choices[:, column] = arm
            pulls[replica, arm] += 1
            width[replica, arm] = self._width(pulls[replica, arm])
        return choices

    def _width(self, pulls: Floats) -> Floats:
        """1/√n, infinite for an arm that was never pulled; without exploration 0 for the others."""
        if self.exploration == 0:
            return np.where(pulls > 0, 0.0, np.inf)
        with np.errstate(divide="ignore"):
            return 1 / np.sqrt(pulls)

    def _best(self, means: Floats, width: Floats, total: Floats) -> Integers:
        """The arm with the highest upper confidence bound: ``[R]``."""
        scale = np.sqrt(self.exploration * np.log(np.maximum(total, 1.0)))
        # With a scale of 0 the infinite width of an arm without pulls would become NaN.
        scale = np.maximum(scale, np.finfo(np.float64).tiny)
        best: Integers = np.argmax(means + scale[:, None] * width, axis=-1)
        return best


def _span(scale: Scale) -> float:
    """The factor that brings rewards to a range of length 1, for which the bonus is derived."""
    return 1.0 if scale.bounds is None else scale.bounds[1] - scale.bounds[0]


def _pulls(state: UCB1State, action: Integers) -> Floats:
    index = state.problem.space.index(action)
    return tally(index, np.ones(index.shape), state.pending.shape[-1])
