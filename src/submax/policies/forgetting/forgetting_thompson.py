"""Base class of Thompson sampling that forgets."""

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.contracts.facts import Facts
from submax.core.contracts.policy import Policy
from submax.policies.classic.thompson import Thompson
from submax.policies.forgetting.forgetting_state import ForgettingState


class ForgettingThompson(Policy[ForgettingState]):
    """Decide as `Thompson` does, by weighted pulls and rewards; the prior is never forgotten."""

    alpha: float
    beta: float

    @property
    def facts(self) -> Facts:
        return Facts(uses_context=False, forgets=True)

    @property
    def thompson(self) -> Thompson:
        """The rule for the statistics; it also checks the prior."""
        return Thompson(self.alpha, self.beta)

    def act(
        self, state: ForgettingState, context: Floats, rng: np.random.Generator
    ) -> ChosenActions:
        return self.thompson.act(state.arms, context, rng)

    def log_prob(self, state: ForgettingState, context: Floats, action: Integers) -> Floats:
        return self.thompson.log_prob(state.arms, context, action)

    def probabilities(self, state: ForgettingState, context: Floats) -> Floats:
        return self.thompson.probabilities(state.arms, context)
