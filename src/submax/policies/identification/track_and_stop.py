"""Track-and-Stop."""

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
from submax.policies.classic.bernoulli_divergence import divergence
from submax.policies.identification.best_arm_policy import BestArmPolicy
from submax.policies.identification.optimal_shares import optimal_shares


@stored("track-and-stop-state")
class TrackingState(NamedTuple):
    """The statistics of the arms, and the optimal share of each arm's pulls, ``share [R, A]``."""

    problem: Problem
    arms: ArmStatistics
    share: Floats


@dataclass(frozen=True)
class TrackAndStop(BestArmPolicy[TrackingState]):
    """Take the arm that lacks most pulls to its optimal share w*_a(μ̂) of the t pulls.

    If an arm has fewer than √t − K/2 pulls, the arm with the fewest pulls is taken; otherwise the
    arm with the highest t w*_a − N_a (D-tracking). The policy stops when the evidence
    Z = min_a N_1 kl(μ̂_1, m) + N_a kl(μ̂_a, m) for its best arm 1 exceeds ln((1 + ln t) / δ), where m
    is the mean of both arms. δ is ``failure``. Rewards are scaled to 0 … 1 and counted as parts of
    successes.

    Reference: Garivier and Kaufmann (2016), Optimal best arm identification with fixed confidence,
    sections 3 and 6.
    """

    failure: float = 0.05

    def __post_init__(self) -> None:
        positive("failure", self.failure)
        probability("failure", self.failure)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> TrackingState:
        problem.scale.known_bounds("track-and-stop")
        arms = ArmStatistics.empty(problem, replicas)
        return TrackingState(problem, arms, np.full(arms.pulls.shape, 1 / problem.space.size))

    def probabilities(self, state: TrackingState, context: Floats) -> Floats:
        pulls = state.arms.pulls
        total = pulls.sum(axis=-1, keepdims=True)
        fewest = pulls.min(axis=-1, keepdims=True)
        forced = (fewest < np.sqrt(total) - pulls.shape[1] / 2) | (fewest == 0)
        lacking = total * state.share - pulls
        tracked = lacking >= lacking.max(axis=-1, keepdims=True) - 1e-9 * (1 + total)
        return self.even(np.where(forced, pulls == fewest, tracked))

    def restricted(self, state: TrackingState, choices: Choices) -> TrackingState:
        """Compute the optimal shares of these choices alone."""
        arms = state.arms.restricted(choices)
        return TrackingState(arms.problem, arms, optimal_shares(_means(arms)))

    def update(
        self, state: TrackingState, feedback: Feedback, rng: np.random.Generator
    ) -> TrackingState:
        arms = state.arms.add(feedback)
        return TrackingState(state.problem, arms, optimal_shares(_means(arms)))

    def recommend(self, state: TrackingState) -> Integers:
        best: Integers = _means(state.arms).argmax(axis=-1)
        return best

    def stopped(self, state: TrackingState) -> Booleans:
        pulls = state.arms.pulls
        if pulls.shape[1] == 1:
            return np.ones(len(pulls), dtype=bool)
        total = np.maximum(pulls.sum(axis=-1), 1.0)
        enough: Booleans = self.evidence(state) > np.log((1 + np.log(total)) / self.failure)
        return enough

    def evidence(self, state: TrackingState) -> Floats:
        """Return the generalized likelihood ratio of the best arm against all others, ``[R]``."""
        mean, pulls = _means(state.arms), state.arms.pulls
        replica = np.arange(len(pulls))
        best = mean.argmax(axis=-1)
        own_mean, own_pulls = mean[replica, best, None], pulls[replica, best, None]
        middle = (own_pulls * own_mean + pulls * mean) / np.maximum(own_pulls + pulls, 1.0)
        # An arm without pulls gives no evidence, whatever its mean.
        other = np.where(pulls > 0, divergence(mean, middle), 0.0)
        ratio = own_pulls * divergence(own_mean, middle) + pulls * other
        ratio[replica, best] = np.inf
        found: Floats = ratio.min(axis=-1)
        return found


def _means(arms: ArmStatistics) -> Floats:
    """Return the mean success of every arm, 0 for an arm that was never taken."""
    return arms.successes("track-and-stop") / np.where(arms.pulls > 0, arms.pulls, 1.0)
