"""The numbers of every slate that estimators of rankings need about one policy."""

from typing import NamedTuple

import numpy as np

from submax.core.arrays import Booleans, Floats


class RankingEvidence(NamedTuple):
    """The evidence of n slates of K positions about a policy π; arrays are ``[n, K]``.

    ``weight`` is π(a_k | a_1 … a_k−1) / p(a_k | a_1 … a_k−1), 1 at positions that a slate does not
    have (``filled`` is False). ``marginal_weight`` is π(a at k) / p(a at k) of the item a at
    position k. ``placed [n, K, K]`` is π(a at j) for the item at position k and every position j,
    and ``logged_placed`` the same of the logging policy. ``predicted`` is q̂_k(a_k), a prediction of
    Σ_j≥k r_j under π that was fitted to other slates, and ``expected`` its expectation under π
    given the items above. What is not known is None. ``bounds`` are those of one reward, and
    ``counts [n]`` is the number of equal slates, if it is not one.
    """

    reward: Floats
    filled: Booleans
    weight: Floats
    marginal_weight: Floats | None = None
    placed: Floats | None = None
    logged_placed: Floats | None = None
    predicted: Floats | None = None
    expected: Floats | None = None
    bounds: tuple[float, float] | None = None
    counts: Floats | None = None

    def above(self) -> Floats:
        """Return the weight of the items down to each position, Π_j≤k w_j."""
        found: Floats = np.cumprod(self.weight, axis=1, dtype=np.float64)
        return found

    def reach(self, weight: Floats) -> tuple[float, float]:
        """Return the smallest and the largest possible Σ_k w_k r_k of a slate."""
        low, high = self.bounds or (float(self.reward.min()), float(self.reward.max()))
        sums = np.where(self.filled, weight, 0.0).sum(axis=1)
        ends = np.outer([sums.min(), sums.max(), 0.0], [low, high])
        return float(ends.min()), float(ends.max())
