"""Upper confidence bounds with discounted feedback."""

from dataclasses import dataclass

import numpy as np

from submax.core.checks import below_one, non_negative
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.policies.forgetting.forgetting_state import ForgettingState
from submax.policies.forgetting.forgetting_ucb import ForgettingUCB


@dataclass(frozen=True)
class DiscountedUCB(ForgettingUCB):
    """Take the arm with the highest X̄_a + 2 √(ξ ln n / N_a) of discounted sums.

    N_a = Σ_s γ^(t−s) 1{a_s = a}, X̄_a = Σ_s γ^(t−s) r_s 1{a_s = a} / N_a, n = Σ_a N_a. γ is
    ``discount``, ξ is ``exploration``. Rewards are scaled to 0 … 1.

    Reference: Garivier and Moulines (2011), On upper-confidence bound policies for switching bandit
    problems, section 2.1, with B = 1 and ξ = 0.6.
    """

    discount: float = 0.999
    exploration: float = 0.6

    def __post_init__(self) -> None:
        below_one("discount", self.discount)
        non_negative("exploration", self.exploration)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> ForgettingState:
        problem.scale.known_bounds("discounted UCB")
        return ForgettingState.empty(problem, replicas, window=False)

    def update(
        self, state: ForgettingState, feedback: Feedback, rng: np.random.Generator
    ) -> ForgettingState:
        return state.discounted(feedback, self.discount)
