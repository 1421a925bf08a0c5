"""The difference between what a bandit and its baseline earn, with an interval for all times."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from submax.core.arrays import Booleans, Floats
from submax.live.monitoring.lift.cluster_sums import ClusterSums
from submax.sequential.mixture_boundary import mixture_boundary

TYPICAL_VARIANCE = 0.05
"""The variance of rewards, as a share of their squared range, for which intervals are narrowest:
that of a reward of 1 that comes with a chance of 5 %."""
PLANNED_DECISIONS = 10_000
"""The number of decisions about which intervals are narrowest."""


class Lift(NamedTuple):
    """An estimate, and an interval that holds the truth at all times with the given chance.

    ``exact`` is false if rewards have no bounds, or if decisions of the same unit depend on each
    other: then the interval holds for large samples only.
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
    far, which makes the noise of x small; ``start`` counts as one reward before all others, and
    must be within the bounds of rewards, so that |r − m| is at most their range.

    If the share changes, a new tally begins, because the interval is valid only for numbers that
    were fixed before the first decision.

    **Exact**: for rewards within bounds and decisions without units, whose groups are drawn
    independently. Sums S = Σ (x − E x) and V = Σ x² then give supermartingales for every size of
    bet, and the interval is valid for any number of decisions, although the lift may change with
    time and the bandit learns.

    **For large samples**: rewards without bounds need a variance. Decisions of one unit share a
    group, so that V is the sum of squares of clusters of units (``ClusterSums``). S is then no sum
    of independent parts. If rewards of a unit are not correlated negatively, S crosses the boundary
    at most as often as a sum of independent parts with the same variances (Slepian's inequality).

    Reference: Waudby-Smith, Wu, Ramdas, Karampatziakis and Mineiro (2024), for importance weights;
    Howard, Ramdas, McAuliffe and Sekhon (2021), for intervals at all times; Waudby-Smith, Arbour,
    Sinha, Kennedy and Ramdas (2024), for large samples.
    """

    share: float
    start: float = 0.0
    decisions: int = 0
    held_out: int = 0
    reward_sum: float = 0.0
    sum: float = 0.0
    squares: float = 0.0
    held_out_reward: float = 0.0
    clusters: ClusterSums | None = None

    def add(
        self, reward: Floats, held_out: Booleans, units: Sequence[str | None] | None = None
    ) -> "LiftTally":
        """Return the tally with further decisions.

        ``units`` are those of the decisions; None if no decision has one. The order of decisions
        matters, but not how they are divided between calls.
        """
        # Sums in sequence do not depend on how the rows are divided.
        sums = _running(self.reward_sum, reward)
        centre = (self.start + sums[:-1]) / (1 + self.decisions + np.arange(len(reward)))
        x = (reward - centre) * np.where(held_out, -1 / self.share, 1 / (1 - self.share))
        return LiftTally(
            self.share,
            self.start,
            self.decisions + len(reward),
            self.held_out + int(held_out.sum()),
            float(sums[-1]),
            float(_running(self.sum, x)[-1]),
            float(_running(self.squares, x**2)[-1]),
            float(_running(self.held_out_reward, reward[held_out])[-1]),
            self._clustered(x, units),
        )

    def _clustered(self, x: Floats, units: Sequence[str | None] | None) -> ClusterSums | None:
        """The sums by clusters; None as long as no decision has a unit."""
        has_units = units is not None and any(unit is not None for unit in units)
        if self.clusters is None and not has_units:
            return None
        before = self.clusters
        if before is None:
            # The decisions so far had no units, and each was a cluster of its own.
            before = ClusterSums([], [], self.sum, self.squares, self.decisions)
        return before.add(x, [None] * len(x) if units is None else units)

    @property
    def means(self) -> tuple[float, float]:
        """The mean rewards of the bandit and of the holdout; NaN without decisions."""
        others = self.decisions - self.held_out
        rest = self.reward_sum - self.held_out_reward
        return (
            rest / others if others else math.nan,
            self.held_out_reward / self.held_out if self.held_out else math.nan,
        )

    def lift(self, bounds: tuple[float, float] | None, error: float = 0.05) -> Lift:
        """Return the lift per decision, for rewards within ``bounds``.

        At all times together the truth is outside the interval with at most the chance ``error``.
        """
        exact = bounds is not None and self.clusters is None
        limit = math.inf if bounds is None else bounds[1] - bounds[0]
        if self.decisions == 0:
            return Lift(math.nan, -limit, limit, exact)
        estimate = self.sum / self.decisions
        if exact:
            width = mixture_boundary(self.squares, error, *self.boundary_of(limit))
        else:
            deviation = math.sqrt(self._variance(estimate) / self.decisions)
            width = deviation * mixture_boundary(self.decisions, error, 0.0, PLANNED_DECISIONS)
        half = width / self.decisions
        return Lift(estimate, max(estimate - half, -limit), min(estimate + half, limit), exact)

    def _variance(self, estimate: float) -> float:
        return self.squares if self.clusters is None else self.clusters.variance(estimate)

    def boundary_of(self, span: float) -> tuple[float, float]:
        """The largest |x|, and the Σ x² at which the interval is narrowest, for this span."""
        typical = TYPICAL_VARIANCE * span**2 / (self.share * (1 - self.share))
        return span / min(self.share, 1 - self.share), PLANNED_DECISIONS * typical


def _running(before: float, values: Floats) -> Floats:
    """Return the running sums, added in sequence."""
    return np.cumsum(np.concatenate([[before], values]))
