"""Sums from which the difference between a shadow and a bandit follows."""

import math
from typing import Self

import msgspec
import numpy as np

from submax.bandit.lift import PLANNED_DECISIONS, TYPICAL_VARIANCE, Lift
from submax.core.arrays import Floats
from submax.sequential.mixture_boundary import mixture_boundary

MAX_WEIGHT = 10.0
"""The largest weight (C) of a decision if rewards have bounds. With 20, the interval of 2000
decisions is 1.5 times as wide; a smaller one leaves out more of what the shadow would do."""


class ShadowTally(msgspec.Struct, frozen=True):
    """How much more the shadow would have earned for each decision, in constant memory.

    A decision was drawn with the probability p and has the reward r; the shadow gives its action
    the probability q. With w = q / p and any number m that was known before, x = (r − m)(w − 1) has
    the expected value E[r | shadow] − E[r | bandit]. Here m is the mean of the rewards so far.

    For rewards within bounds, w is cut off at C = ``MAX_WEIGHT``, so that |x| is bounded. What this
    leaves out of the shadow is known: b = Σ max(q − C p, 0) over all actions. So x − (m − low) b is
    at most, and x + (high − m) b at least, the difference in expectation; their sums give the two
    ends of the interval. If the probabilities of all actions are not known, (r − low)(w − 1) and
    (r − high)(w − 1) do the same.

    Reference: the interval is that of ``LiftTally``; Ionides (2008) for weights that are cut off.
    """

    start: float
    decisions: int = 0
    reward_sum: float = 0.0
    low_sum: float = 0.0
    high_sum: float = 0.0
    low_squares: float = 0.0
    high_squares: float = 0.0

    def add(
        self, reward: Floats, weight: Floats, clipped: Floats, bounds: tuple[float, float] | None
    ) -> Self:
        """Return the tally with further decisions, in the order in which they matured.

        ``clipped`` is b, or -1 if it is not known.
        """
        sums = np.cumsum(np.concatenate([[self.reward_sum], reward]))
        centre = (self.start + sums[:-1]) / (1 + self.decisions + np.arange(len(reward)))
        if bounds is None:
            low = high = (reward - centre) * (weight - 1)
            below = above = np.zeros(len(reward))
        else:
            listed = clipped >= 0
            excess = np.minimum(weight, MAX_WEIGHT) - 1
            low = (reward - np.where(listed, centre, bounds[0])) * excess
            high = (reward - np.where(listed, centre, bounds[1])) * excess
            below = np.where(listed, (centre - bounds[0]) * clipped, 0.0)
            above = np.where(listed, (bounds[1] - centre) * clipped, 0.0)
        return type(self)(
            self.start,
            self.decisions + len(reward),
            float(sums[-1]),
            self.low_sum + float((low - below).sum()),
            self.high_sum + float((high + above).sum()),
            self.low_squares + float((low**2).sum()),
            self.high_squares + float((high**2).sum()),
        )

    def lift(self, bounds: tuple[float, float] | None, error: float = 0.05) -> Lift:
        """Return the difference per decision; see ``LiftTally.lift``."""
        count = self.decisions
        if count == 0:
            return Lift(math.nan, -math.inf, math.inf, bounds is not None)
        estimate = (self.low_sum + self.high_sum) / (2 * count)
        if bounds is None:
            deviation = math.sqrt(self.low_squares / count)
            half = deviation * mixture_boundary(count, error, 0.0, PLANNED_DECISIONS) / count
            return Lift(estimate, estimate - half, estimate + half, exact=False)
        span = bounds[1] - bounds[0]
        scale, tightest_at = span * (MAX_WEIGHT - 1), PLANNED_DECISIONS * TYPICAL_VARIANCE * span**2
        below = mixture_boundary(self.low_squares, error, scale, tightest_at)
        above = mixture_boundary(self.high_squares, error, scale, tightest_at)
        low, high = (self.low_sum - below) / count, (self.high_sum + above) / count
        return Lift(estimate, max(low, -span), min(high, span), exact=True)
