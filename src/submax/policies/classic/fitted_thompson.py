"""Thompson sampling with a prior that is fitted to the counts of all arms."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import at_least
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.listing_policy import ListingPolicy
from submax.core.contracts.problem import Problem
from submax.core.running.stored import stored
from submax.core.spaces.space import Choices
from submax.estimators.fitted_smoothing import fitted_smoothing
from submax.policies.classic.arm_statistics import ArmStatistics
from submax.policies.classic.largest_beta import largest_beta

SMALLEST_PARAMETER = 0.05
"""The smallest Beta parameter for which the quadrature of `largest_beta` is accurate; a smaller
parameter of a sharpened posterior is raised to this."""


@stored("fitted-thompson-state")
class FittedThompsonState(NamedTuple):
    """The counts of all arms, and the posterior of every arm: Beta(``a [R, A]``, ``b [R, A]``)."""

    problem: Problem
    arms: ArmStatistics
    a: Floats
    b: Floats

    def restricted(self, choices: Choices) -> Self:
        """Return the posterior of the joint actions of these choices alone."""
        kept = self.problem.space.indices_of(choices)
        return self._replace(
            problem=self.problem.restricted(choices),
            arms=self.arms.restricted(choices),
            a=self.a[:, kept],
            b=self.b[:, kept],
        )


@dataclass(frozen=True)
class FittedThompson(ListingPolicy[FittedThompsonState]):
    """Thompson sampling with an empirical-Bayes Beta prior and an optionally sharper posterior.

    π(a) is the probability that a's draw from Beta(s (α + successes), s (β + failures)) is the
    largest. The prior Beta(α, β) is the one with the highest marginal likelihood of the counts of
    all arms, see ``fitted_smoothing``. s is ``sharpness``: 1 is Thompson sampling, and a larger
    value explores less. In comparisons this policy is a baseline of ``rcp-adaptive``, which fits
    the same prior.

    Reference: Robbins (1956) for empirical Bayes; Chapelle and Li (2011) for a reshaped posterior.
    """

    sharpness: float = 1.0

    def __post_init__(self) -> None:
        at_least("sharpness", self.sharpness, 0.1)

    @property
    def facts(self) -> Facts:
        return Facts(uses_context=False)

    def init(
        self, problem: Problem, replicas: int, rng: np.random.Generator
    ) -> FittedThompsonState:
        problem.scale.known_bounds("Thompson sampling with Beta posteriors")
        arms = ArmStatistics.empty(problem, replicas)
        one = np.ones_like(arms.pulls)
        return FittedThompsonState(problem, arms, one, one)

    def probabilities(self, state: FittedThompsonState, context: Floats) -> Floats:
        posterior = (state.a, state.b)
        sharpened = (np.maximum(self.sharpness * one, SMALLEST_PARAMETER) for one in posterior)
        return largest_beta(*sharpened)[:, None, :]

    def update(
        self, state: FittedThompsonState, feedback: Feedback, rng: np.random.Generator
    ) -> FittedThompsonState:
        arms = state.arms.add(feedback)
        successes = arms.successes("Thompson sampling")
        counts = np.stack([arms.pulls - successes, successes], axis=1)
        a, b = (counts + fitted_smoothing(counts)[..., None])[:, ::-1].swapaxes(0, 1)
        return FittedThompsonState(state.problem, arms, a, b)
