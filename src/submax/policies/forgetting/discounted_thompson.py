"""Thompson sampling with discounted feedback."""

from dataclasses import dataclass

import numpy as np

from submax.core.checks import below_one
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.policies.forgetting.forgetting_state import ForgettingState
from submax.policies.forgetting.forgetting_thompson import ForgettingThompson


@dataclass(frozen=True)
class DiscountedThompson(ForgettingThompson):
    """Thompson sampling from Beta(α + S_a, β + F_a), where S and F are discounted by γ.

    With every row of any arm, all successes S and failures F are multiplied by γ, and the row is
    added to its arm. α is ``alpha``, β is ``beta``, γ is ``discount``. An arm that is not taken
    returns to the prior.

    Reference: Raj and Kalyani (2017), Taming non-stationary bandits: a Bayesian approach.
    """

    discount: float = 0.999
    alpha: float = 1.0
    beta: float = 1.0

    def __post_init__(self) -> None:
        below_one("discount", self.discount)
        _ = self.thompson

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> ForgettingState:
        problem.scale.known_bounds("discounted Thompson sampling")
        return ForgettingState.empty(problem, replicas, window=False)

    def update(
        self, state: ForgettingState, feedback: Feedback, rng: np.random.Generator
    ) -> ForgettingState:
        return state.discounted(feedback, self.discount)
