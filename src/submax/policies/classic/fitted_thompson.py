"""Thompson sampling whose prior is fitted to the counts."""

from collections.abc import Iterator, Mapping
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
from submax.estimators.fitted_smoothing import fitted_smoothing
from submax.policies.classic.arm_statistics import ArmStatistics
from submax.policies.classic.largest_beta import largest_beta

NARROWEST = 0.05
"""Below this the quadrature is not made for a parameter."""


@stored("fitted-thompson-state")
class FittedThompsonState(NamedTuple):
    """What has come back, and the posterior of every arm: Beta(``a``, ``b``), ``[R, A]`` both."""

    problem: Problem
    arms: ArmStatistics
    a: Floats
    b: Floats


@dataclass(frozen=True)
class FittedThompson(ListingPolicy[FittedThompsonState]):
    """Thompson sampling with a Beta prior by empirical Bayes, and a sharper posterior.

    The prior is the one that makes the counts of all arms most likely, see ``fitted_smoothing``.
    All parameters of the posterior are multiplied by ``sharpness``: 1 is Thompson sampling, more
    explores less. It stands beside ``rcp-adaptive`` in comparisons, which fits the same prior.
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
        """Nothing pulled: all arms are the same."""
        problem.scale.known_bounds("Thompson sampling with Beta posteriors")
        arms = ArmStatistics.empty(problem, replicas)
        one = np.ones_like(arms.pulls)
        return FittedThompsonState(problem, arms, one, one)

    def probabilities(self, state: FittedThompsonState, context: Floats) -> Floats:
        """Probability of every arm, by quadrature: ``[R, 1, A]``."""
        sharp = (np.maximum(self.sharpness * part, NARROWEST) for part in (state.a, state.b))
        return largest_beta(*sharp)[:, None, :]

    def update(
        self, state: FittedThompsonState, feedback: Feedback, rng: np.random.Generator
    ) -> FittedThompsonState:
        """Count, and fit the prior."""
        arms = state.arms.add(feedback)
        successes = arms.successes("Thompson sampling")
        counts = np.stack([arms.pulls - successes, successes], axis=1)
        a, b = (counts + fitted_smoothing(counts)[..., None])[:, ::-1].swapaxes(0, 1)
        return FittedThompsonState(state.problem, arms, a, b)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """As it is, and sharper."""
        yield cls()
        yield cls(4.0)

    @classmethod
    def presets(cls) -> Mapping[str, Self]:
        """Both that stand beside rcp-adaptive."""
        return {"thompson-fitted": cls(), "thompson-sharpened": cls(4.0)}
