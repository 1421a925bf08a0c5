"""Upper confidence bounds of the last rows."""

from dataclasses import dataclass

import numpy as np

from submax.core.checks import non_negative, whole_number
from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.policies.forgetting.forgetting_state import ForgettingState
from submax.policies.forgetting.forgetting_ucb import ForgettingUCB


@dataclass(frozen=True)
class SlidingWindowUCB(ForgettingUCB):
    """Take the arm with the highest X̄_a + 2 √(ξ ln min(t, τ) / N_a) of the last τ rows.

    N_a and X̄_a are the number of rows of the arm among them and their mean reward. τ is ``window``,
    ξ is ``exploration``. Rewards are scaled to 0 … 1.

    Reference: Garivier and Moulines (2011), section 2.2, with B = 1 and ξ = 0.6.
    """

    window: int = 1000
    exploration: float = 0.6

    def __post_init__(self) -> None:
        whole_number("window", self.window, at_least=1)
        non_negative("exploration", self.exploration)

    def init(self, problem: Problem, replicas: int, rng: np.random.Generator) -> ForgettingState:
        problem.scale.known_bounds("sliding-window UCB")
        return ForgettingState.empty(problem, replicas, window=True)

    def update(
        self, state: ForgettingState, feedback: Feedback, rng: np.random.Generator
    ) -> ForgettingState:
        return state.windowed(feedback, self.window, rng)
