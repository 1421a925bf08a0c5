"""Base class of upper confidence bounds that forget."""

import numpy as np

from submax.core.arrays import Floats
from submax.core.contracts.facts import Facts
from submax.core.contracts.listing_policy import ListingPolicy
from submax.policies.forgetting.forgetting_state import ForgettingState


class ForgettingUCB(ListingPolicy[ForgettingState]):
    """Take the arm with the highest mean + 2 √(ξ ln n / N_a); equal arms share the probability.

    N_a is the weighted number of pulls of the arm, n their sum, or the length of the window if this
    is less, and ξ is ``exploration``. An arm without weight is taken first. Rewards are scaled to
    0 … 1.
    """

    exploration: float

    @property
    def facts(self) -> Facts:
        return Facts(uses_context=False, forgets=True)

    def probabilities(self, state: ForgettingState, context: Floats) -> Floats:
        arms = state.arms
        pulls = np.where(arms.pulls > 0, arms.pulls, 1.0)
        mean = arms.successes(f"the {type(self).__name__} policy") / pulls
        logarithm = np.log(np.maximum(arms.pulls.sum(axis=-1, keepdims=True), 1.0))
        index = np.where(
            arms.pulls > 0, mean + 2 * np.sqrt(self.exploration * logarithm / pulls), np.inf
        )
        best = index == index.max(axis=-1, keepdims=True)
        listed: Floats = best / best.sum(axis=-1, keepdims=True)
        return listed[:, None]
