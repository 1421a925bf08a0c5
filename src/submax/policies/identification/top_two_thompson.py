"""Top-two Thompson sampling."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import positive, probability
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.core.running.stored import stored
from submax.core.spaces.space import Choices
from submax.policies.classic.arm_statistics import ArmStatistics
from submax.policies.classic.largest_beta import largest_beta
from submax.policies.classic.thompson import Thompson
from submax.policies.identification.best_arm_policy import BestArmPolicy


@stored("top-two-state")
class TopTwoState(NamedTuple):
    """The statistics of the arms, and the probability that each is the best, ``best [R, A]``."""

    problem: Problem
    arms: ArmStatistics
    best: Floats


@dataclass(frozen=True)
class TopTwoThompson(BestArmPolicy[TopTwoState]):
    """Draw the best arm as Thompson sampling does; with probability 1 − b take another one instead.

    The other arm is drawn again and again until it differs from the first. With α_a the probability
    that arm a is the best, π(a) = α_a (b + (1 − b) Σ_{j≠a} α_j / (1 − α_j)). b is ``leader``. The
    prior of every arm is Beta(``alpha``, ``beta``). The policy stops when one α_a is at least
    1 − δ; δ is ``failure``. It recommends the arm with the highest α_a.

    Reference: Russo (2016), Simple Bayesian algorithms for best arm identification.
    """

    leader: float = 0.5
    alpha: float = 1.0
    beta: float = 1.0
    failure: float = 0.05

    def __post_init__(self) -> None:
        probability("leader", self.leader)
        positive("failure", self.failure)
        probability("failure", self.failure)
        Thompson(self.alpha, self.beta)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> TopTwoState:
        problem.scale.known_bounds("top-two Thompson sampling")
        arms = ArmStatistics.empty(problem, replicas)
        return TopTwoState(problem, arms, self._chance_of_best(arms))

    def probabilities(self, state: TopTwoState, context: Floats) -> Floats:
        best = state.best
        size = best.shape[1]
        if size == 1:
            return best[:, None]
        # Row j has the probabilities of the other arm if arm j is the first.
        other = np.where(np.eye(size, dtype=bool), 0.0, best[:, None, :])
        total = other.sum(axis=-1, keepdims=True)
        even = (1 - np.eye(size)) / (size - 1)
        other = np.where(total > 0, other / np.where(total > 0, total, 1.0), even)
        second = np.einsum("rj,rja->ra", best, other)
        listed: Floats = self.leader * best + (1 - self.leader) * second
        return listed[:, None]

    def restricted(self, state: TopTwoState, choices: Choices) -> TopTwoState:
        """Compute how likely each of these choices is the best of them."""
        arms = state.arms.restricted(choices)
        return TopTwoState(arms.problem, arms, self._chance_of_best(arms))

    def update(
        self, state: TopTwoState, feedback: Feedback, rng: np.random.Generator
    ) -> TopTwoState:
        arms = state.arms.add(feedback)
        return TopTwoState(state.problem, arms, self._chance_of_best(arms))

    def recommend(self, state: TopTwoState) -> Integers:
        best: Integers = state.best.argmax(axis=-1)
        return best

    def stopped(self, state: TopTwoState) -> Booleans:
        certain: Booleans = state.best.max(axis=-1) >= 1 - self.failure
        return certain

    def _chance_of_best(self, arms: ArmStatistics) -> Floats:
        """Return the posterior probability that each arm is the best, ``[R, A]``."""
        successes = arms.successes("top-two Thompson sampling")
        return largest_beta(self.alpha + successes, self.beta + arms.pulls - successes)
