"""Greedy decisions on the posterior mean."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import positive
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.listing_policy import ListingPolicy
from submax.core.contracts.problem import Problem
from submax.policies.classic.arm_statistics import ArmStatistics


@dataclass(frozen=True)
class PosteriorGreedy(ListingPolicy[ArmStatistics]):
    """Take the arm with the highest posterior mean (α + successes) / (α + β + pulls).

    The prior of every arm is Beta(α, β). Ties are broken at random for every decision. An
    optimistic prior explores: an arm is left only when its mean has fallen below those of others.

    Reference: Bayati et al. (2020) on greedy decisions with many arms.
    """

    alpha: float = 1.0
    beta: float = 1.0

    def __post_init__(self) -> None:
        positive("alpha", self.alpha)
        positive("beta", self.beta)

    @property
    def facts(self) -> Facts:
        return Facts(uses_context=False)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> ArmStatistics:
        problem.scale.known_bounds("the PosteriorGreedy policy")
        return ArmStatistics.empty(problem, replicas)

    def probabilities(self, state: ArmStatistics, context: Floats) -> Floats:
        successes = self.alpha + state.successes("the PosteriorGreedy policy")
        means = successes / (self.alpha + self.beta + state.pulls)
        best = means == means.max(axis=-1, keepdims=True)
        listed: Floats = best / best.sum(axis=-1, keepdims=True)
        return listed[:, None]

    def update(
        self, state: ArmStatistics, feedback: Feedback, rng: np.random.Generator
    ) -> ArmStatistics:
        return state.add(feedback)
