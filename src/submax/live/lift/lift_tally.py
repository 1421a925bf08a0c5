"""The difference between what a bandit and its baseline earn, with an interval for all times."""

import math
from typing import NamedTuple, Self

import msgspec
import numpy as np

from submax.core.arrays import Booleans, Floats
from submax.live.lift.mixture_boundary import mixture_boundary

TYPICAL_VARIANCE = 0.05
"""The variance of rewards, as a share of their squared range, for which intervals are narrowest:
that of a reward of 1 that comes with a chance of 5 %."""
PLANNED_DECISIONS = 10_000
"""The number of decisions about which intervals are narrowest."""


class Lift(NamedTuple):
    """An estimate, and an interval that holds the truth at all times with the given chance.

    ``exact`` is false if rewards have no bounds: then the interval holds for large samples only.
    """

    estimate: float
    low: float
    high: float
    exact: bool


class LiftTally(msgspec.Struct, frozen=True):
    """Sums from which the lift follows: constant memory, however many decisions there were.

    Every decision belonged to the holdout with the chance ``share`` (h). With w = 1 / (1 − h) if
    it did not, and w = −1 / h if it did, and with any number m that was known before the decision,
    x = (r − m) w has the expected value E[r | bandit] − E[r | holdout]. The mean of x estimates
    the mean of this difference over the decisions so far. Here m is the mean of the rewards so
    far, which makes the noise of x small.

    If the share changes, a new tally begins, because the interval is valid only for numbers that
    were fixed before the first decision.

    Reference: Waudby-Smith, Wu, Ramdas, Karampatziakis and Mineiro (2024), for importance weights;
    Howard, Ramdas, McAuliffe and Sekhon (2021), for intervals at all times.
    """

    share: float
    decisions: int = 0
    held_out: int = 0
    reward_sum: float = 0.0
    sum: float = 0.0
    squares: float = 0.0

    def add(self, reward: Floats, held_out: Booleans, start: float = 0.0) -> Self:
        """Return the tally with further decisions.

        ``start`` counts as the reward of one decision before all others. The order of decisions
        matters, but not how they are divided between calls.
        """
        # Sums in sequence do not depend on how the rows are divided.
        sums = _running(self.reward_sum, reward)
        centre = (start + sums[:-1]) / (1 + self.decisions + np.arange(len(reward)))
        x = (reward - centre) * np.where(held_out, -1 / self.share, 1 / (1 - self.share))
        return type(self)(
            self.share,
            self.decisions + len(reward),
            self.held_out + int(held_out.sum()),
            float(sums[-1]),
            float(_running(self.sum, x)[-1]),
            float(_running(self.squares, x**2)[-1]),
        )

    def lift(self, bounds: tuple[float, float] | None, error: float = 0.05) -> Lift:
        """Return the lift per decision, for rewards within ``bounds``.

        At all times together the truth is outside the interval with at most the chance ``error``.
        """
        if self.decisions == 0:
            return Lift(math.nan, -math.inf, math.inf, bounds is not None)
        estimate = self.sum / self.decisions
        if bounds is None:
            deviation = math.sqrt(self.squares / self.decisions)
            width = deviation * mixture_boundary(self.decisions, error, 0.0, PLANNED_DECISIONS)
            return self._around(estimate, width, math.inf, exact=False)
        span = bounds[1] - bounds[0]
        width = mixture_boundary(self.squares, error, *self.boundary_of(span))
        return self._around(estimate, width, span, exact=True)

    def boundary_of(self, span: float) -> tuple[float, float]:
        """The largest |x|, and the Σ x² at which the interval is narrowest, for this span."""
        typical = TYPICAL_VARIANCE * span**2 / (self.share * (1 - self.share))
        return span / min(self.share, 1 - self.share), PLANNED_DECISIONS * typical

    def _around(self, estimate: float, width: float, limit: float, exact: bool) -> Lift:
        """The interval of this half width for the sum, within what is possible."""
        half = width / self.decisions
        return Lift(estimate, max(estimate - half, -limit), min(estimate + half, limit), exact)


def _running(before: float, values: Floats) -> Floats:
    """Return the running sums, added in sequence."""
    return np.cumsum(np.concatenate([[before], values]))
