"""ε-greedy."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import probability
from submax.core.contracts.facts import Facts
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.listing_policy import ListingPolicy
from submax.core.contracts.problem import Problem
from submax.core.contracts.stepper import Stepper
from submax.policies.classic.arm_statistics import ArmStatistics
from submax.policies.steppers.listed_stepper import ListedStepper


@dataclass(frozen=True)
class EpsilonGreedy(ListingPolicy[ArmStatistics]):
    """Explore uniformly with probability ε, otherwise take the arm with the highest mean reward.

    π(a) = ε / K + (1 − ε) / T if a is one of the T arms with the highest mean, otherwise ε / K. K
    is the number of arms, ε is ``epsilon``. An arm that was never pulled has mean 0.

    Reference: Sutton and Barto (2018), section 2.2.

    *Departs from the paper:* Xu et al. (2024) write of "a chance of ε for picking the arm with the
    best estimated value"; here, as is usual, ε is the probability of exploring.
    """

    epsilon: float = 0.1

    def __post_init__(self) -> None:
        probability("epsilon", self.epsilon)

    @property
    def facts(self) -> Facts:
        return Facts(uses_context=False)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> ArmStatistics:
        return ArmStatistics.empty(problem, replicas)

    def probabilities(self, state: ArmStatistics, context: Floats) -> Floats:
        means = state.means()
        best = means == means.max(axis=-1, keepdims=True)
        greedy = best / best.sum(axis=-1, keepdims=True)
        explored = self.epsilon / means.shape[-1]
        mixed: Floats = explored + (1 - self.epsilon) * greedy
        return mixed[:, None, :]

    def expected_rewards(self, state: ArmStatistics, context: Floats) -> Floats:
        return state.known_means()[:, None, :]

    def update(
        self, state: ArmStatistics, feedback: Feedback, rng: np.random.Generator
    ) -> ArmStatistics:
        return state.add(feedback)

    def stepper(self, problem: Problem, replicas: int, rng: np.random.Generator) -> Stepper:
        no_context = np.zeros((replicas, 1, 0))
        return ListedStepper(problem, replicas, lambda arms: self.probabilities(arms, no_context))
