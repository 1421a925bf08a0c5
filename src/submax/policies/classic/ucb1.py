"""Upper confidence bound."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Actions, Floats, Integers
from submax.core.checks import non_negative
from submax.core.contracts.chosen_actions import ChosenActions
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
    """What has come back, and the ``pending [R, A]`` pulls that have not."""

    problem: Problem
    arms: ArmStatistics
    pending: Floats


@dataclass(frozen=True)
class UCB1(Policy[UCB1State]):
    """Take the arm with the highest mean + √(c ln t / n), an untried one first.

    n is the arm's number of pulls, t that of all arms, c the ``exploration`` constant; the mean is
    divided by the span of the rewards where their bounds are known. The lowest index wins a tie.
    Under delay only what has come back counts, so that decisions taken together all take one arm;
    with ``pending`` the pulls under way count in n and t as well, which spreads them.

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
        """Nothing pulled, nothing under way."""
        arms = ArmStatistics.empty(problem, replicas)
        return UCB1State(problem, arms, np.zeros_like(arms.pulls))

    def act(self, state: UCB1State, context: Floats, rng: np.random.Generator) -> ChosenActions:
        """Nothing is random: the probability is one."""
        index = self._choices(state, context.shape[1])
        return ChosenActions(state.problem.space.action(index), np.zeros(index.shape))

    def log_prob(self, state: UCB1State, context: Floats, action: Integers) -> Floats:
        """0 for what ``act`` takes in that row, −∞ for everything else."""
        taken = self._choices(state, context.shape[1]) == state.problem.space.index(action)
        return np.where(taken, 0.0, -np.inf)

    def probabilities(self, state: UCB1State, context: Floats) -> Floats:
        """One where ``act`` goes in that row."""
        taken = self._choices(state, context.shape[1])
        return np.eye(state.problem.space.size)[taken]

    def record(
        self, state: UCB1State, action: Actions | None = None, *, upcoming: int | None = None
    ) -> UCB1State:
        """Remember the pulls under way."""
        if not self.pending or action is None:
            return state
        return state._replace(pending=state.pending + _pulls(state, action))

    def update(self, state: UCB1State, feedback: Feedback, rng: np.random.Generator) -> UCB1State:
        """Count what came back; it is no longer under way."""
        arms = state.arms.add(feedback)
        back = tally(
            state.problem.space.index(feedback.action),
            (feedback.weight > 0).astype(np.float64),
            arms.pulls.shape[-1],
        )
        return UCB1State(state.problem, arms, np.maximum(state.pending - back, 0.0))

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
        """1/√n, infinite for an untried arm; all tried arms tie where nothing is explored."""
        if self.exploration == 0:
            return np.where(pulls > 0, 0.0, np.inf)
        with np.errstate(divide="ignore"):
            return 1 / np.sqrt(pulls)

    def _best(self, means: Floats, width: Floats, total: Floats) -> Integers:
        """The arm with the highest index."""
        scale = np.sqrt(self.exploration * np.log(np.maximum(total, 1.0)))
        # A scale of 0 would turn the infinite width of an untried arm into NaN.
        scale = np.maximum(scale, np.finfo(np.float64).tiny)
        best: Integers = np.argmax(means + scale[:, None] * width, axis=-1)
        return best


def _span(scale: Scale) -> float:
    """The bonus is that of rewards between 0 and 1."""
    return 1.0 if scale.bounds is None else scale.bounds[1] - scale.bounds[0]


def _pulls(state: UCB1State, action: Integers) -> Floats:
    index = state.problem.space.index(action)
    return tally(index, np.ones(index.shape), state.pending.shape[-1])
