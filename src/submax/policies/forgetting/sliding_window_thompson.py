"""Thompson sampling from the last rows."""

from dataclasses import dataclass

import numpy as np

from submax.core.checks import whole_number
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.policies.forgetting.forgetting_state import ForgettingState
from submax.policies.forgetting.forgetting_thompson import ForgettingThompson


@dataclass(frozen=True)
class SlidingWindowThompson(ForgettingThompson):
    """Thompson sampling from Beta(α + S_a, β + F_a) of the successes and failures of the last rows.

    α is ``alpha``, β is ``beta``; the last ``window`` rows count, of all arms together.

    Reference: Trovò et al. (2020), Sliding-window Thompson sampling for non-stationary settings.
    """

    window: int = 1000
    alpha: float = 1.0
    beta: float = 1.0

    def __post_init__(self) -> None:
        whole_number("window", self.window, at_least=1)
        _ = self.thompson

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> ForgettingState:
        problem.scale.known_bounds("sliding-window Thompson sampling")
        return ForgettingState.empty(problem, replicas, window=True)

    def update(
        self, state: ForgettingState, feedback: Feedback, rng: np.random.Generator
    ) -> ForgettingState:
        return state.windowed(feedback, self.window, rng)
