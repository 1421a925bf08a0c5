"""Confidence intervals of off-policy estimates, from a few sums over the rows."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy

from submax.core.arrays import Floats
from submax.statistics.boundary import mixture_boundary


class Summed(NamedTuple):
    """An estimate, and all that its intervals depend on.

    The ``value`` V is the mean of n terms t_i, n the number of ``decisions`` (or of clusters).
    ``error`` is its standard error, ``third`` its third cumulant Σ (t_i − V)³ / n³, and ``freedom``
    the degrees of freedom of the error. ``reach`` are the smallest and the largest possible term,
    None if they are not known. ``unseen`` are the smallest and the largest term that one more
    observation would plausibly have; None if these are ``reach``. Blocks of rows (single rows, or
    clusters) in the order of time have these ``sizes``, and the ``deviation`` of a block is the sum
    of its terms minus V.
    """

    value: float
    decisions: float
    error: float
    third: float
    reach: tuple[float, float] | None
    unseen: tuple[float, float] | None = None
    freedom: float = float("inf")
    sizes: Floats | None = None
    deviation: Floats | None = None


class ConfidenceInterval(NamedTuple):
    """The lower and the upper end of a confidence interval."""

    low: float
    high: float

    @classmethod
    def around(cls, value: float, half: float) -> "ConfidenceInterval":
        """Return the interval from ``value - half`` to ``value + half``."""
        return cls(value - half, value + half)

    def joined(self, other: "ConfidenceInterval") -> "ConfidenceInterval":
        """Return the shortest interval that contains both intervals."""
        return ConfidenceInterval(min(self.low, other.low), max(self.high, other.high))


def normal_quantile(level: float) -> float:
    """Return z such that a normal variable is within ±z standard deviations at this level."""
    return float(scipy.special.ndtri(0.5 + level / 2))


def student_factor(level: float, freedom: float) -> float:
    """Return t / z, the quantiles of Student's and of the normal distribution at a level."""
    if not np.isfinite(freedom):
        return 1.0
    return float(scipy.special.stdtrit(freedom, 0.5 + level / 2)) / normal_quantile(level)


def normal(one: Summed, level: float) -> ConfidenceInterval:
    """Return the interval V ± z s / √n, where s² is the variance of the terms.

    For a ratio the terms are those of the delta method. For clusters z is a quantile of Student's
    distribution. The interval is too short if rewards are rare, because V is then not normal.
    """
    z = normal_quantile(level) * student_factor(level, one.freedom)
    return ConfidenceInterval.around(one.value, z * one.error)


BLOCKS = 8192
"""Sums over blocks of a log with more rows than this are those of about so many blocks of rows."""
PSEUDO_OBSERVATION = 0.5
"""Share of the largest possible term that is added, at each end, to what was observed. 1 would make
the interval of a count exact and conservative, 1/2 corresponds to mid-p intervals. The value was
chosen among 0, 1/2 and 1 (docs/research/rare-rewards.md). If all terms are equal it is 1:
with 1/2, a log without a reward would miss an expected number of 1.9 rewards in 15 of 100 logs."""
EQUAL_TERMS = 1e-12
"""Terms are equal if their standard deviation is at most this share of their mean, which rounding
errors cause."""
NORMAL_SHAPE = 1e8
"""Above this shape a gamma distribution is computed as a normal one with a correction for its
skewness, which is then at most 0.0002."""


def gamma(one: Summed, level: float) -> ConfidenceInterval:
    """Return the interval whose ends are quantiles of shifted gamma distributions.

    The mean V of n terms t_i has the variance κ₂ = Σ (t_i − V)² / n² and the third cumulant
    κ₃ = Σ (t_i − V)³ / n³. A count in units of c that has these cumulants has c = κ₃ / κ₂ and an
    expectation of N = κ₂³ / κ₃² units. The exact (Garwood) interval of a Poisson count N is from
    the quantile of a gamma distribution of shape N to that of shape N + 1: one more count may
    have been possible.

    Accordingly, the upper end is V + u + c (G(N) − N), where G(N) is the quantile of the gamma
    distribution of shape N at 1 − (1 − level) / 2, and u is ``PSEUDO_OBSERVATION`` times the
    distance from V to the largest possible (or ``unseen``) term, divided by n; N and c are computed
    with κ₂ + u² and κ₃ + u³. The lower end is the same in the other direction, with the smallest
    possible term. For clusters the quantiles are multiplied by t / z, Student's over the normal
    quantile.

    If rewards are common, κ₃ and u vanish against κ₂, and the interval is the normal one. In a log
    without any reward u is a whole observation, and the upper end is the exact one of a count of 0.
    With u = c / 2 the upper end agrees with the Cornish-Fisher expansion of the studentized mean to
    the second order.

    Reference: Fay and Feuer (1997), Confidence intervals for directly standardized rates; Fay and
    Kim (2017) for mid-p; Hall (1992), The bootstrap and Edgeworth expansion, for the expansion.
    *Departs from the papers:* the unit is matched to the third cumulant, and the distribution is
    shifted, so one formula applies also to terms that are not counts, such as those of doubly
    robust estimates.
    """
    value, count = one.value, one.decisions
    if count < 2:
        return ConfidenceInterval.around(value, float("inf"))
    variance, factor = one.error**2, student_factor(level, one.freedom)
    low, high = one.unseen or one.reach or (value, value)
    share = 1.0 if variance * count <= (EQUAL_TERMS * value) ** 2 else PSEUDO_OBSERVATION
    up, down = (share * max(reach, 0.0) / count for reach in (high - value, value - low))
    most = 0.5 + level / 2
    return ConfidenceInterval(
        value - down - factor * gamma_quantile(most, variance + down**2, down**3 - one.third),
        value + up + factor * gamma_quantile(most, variance + up**2, one.third + up**3),
    )


def gamma_quantile(probability: float, variance: float, third: float) -> float:
    """Return c (G(N) − N) with N = variance³ / third² and c = third / variance.

    G(N) is the quantile of the gamma distribution of shape N. If the third cumulant is negative,
    the distribution is reflected; if it is 0, the distribution is normal.
    """
    if not variance > 0:
        # All terms are equal; NaN stays NaN.
        return variance
    if third < 0:
        return -gamma_quantile(1 - probability, variance, -third)
    skewness = third / variance**1.5
    if skewness**2 * NORMAL_SHAPE < 1:
        z = float(scipy.special.ndtri(probability))
        return float(np.sqrt(variance) * (z + skewness * (z**2 - 1) / 3))
    shape, unit = skewness**-2, third / variance
    return float(unit * (scipy.special.gammaincinv(shape, probability) - shape))


PLANNED_DECISIONS = 10_000
"""The number of decisions about which intervals are narrowest."""
TYPICAL_VARIANCE = 0.02
"""The variance of terms, as a share of their squared range, for which intervals are narrowest. The
number must not depend on the log; intervals are valid, and wider, for other variances."""


def sequential(one: Summed, level: float) -> ConfidenceInterval:
    """Return an interval that contains the truth at all looks together, at this ``level``.

    One may look at a growing log as often as one likes, and stop at any time: an interval for one
    look would miss the truth at some look almost surely. V ± u / n, where u bounds |Σ (t_i − V)|
    at all n together. It follows from Σ (t_i − m_i)², where m_i is the mean of the terms before
    the block of row i (a row, if there are at most 8192), and from the range of the terms. The rows
    must be in the order of time, and the policy must not have learned from them.

    The bound holds for terms that do not depend on later rows and whose range is known: those of
    ``ips`` and ``clipped`` with a fixed threshold. Others (ratios, models that are fitted to the
    log, thresholds that are chosen from it) depend on all rows, so it holds approximately. If
    no range is known, the bound is the one for large samples, from the variance of the terms.

    Reference: Howard, Ramdas, McAuliffe and Sekhon (2021), for sums of bounded terms, whose
    prediction m_i may be any that depends on earlier rows alone; Waudby-Smith, Arbour, Sinha,
    Kennedy and Ramdas (2024), for large samples.
    """
    value, count, error = one.value, one.decisions, 1 - level
    if count < 2 or not np.isfinite(one.error):
        return ConfidenceInterval.around(value, float("inf") if value == value else value)
    low, high = (0.0, 0.0) if one.reach is None else one.reach
    scale = high - low
    rows, deviation = one.sizes, one.deviation
    if not scale > 0 or rows is None or deviation is None:
        width = one.error * np.sqrt(count)
        width *= mixture_boundary(count, error, 0.0, PLANNED_DECISIONS)
        return ConfidenceInterval.around(value, float(width / count))
    sums = deviation + value * rows
    start = float(np.clip(0.0, low, high))
    before = np.concatenate([[start], start + np.cumsum(sums)[:-1]])
    distance = value - np.clip(before / (1.0 + np.cumsum(rows) - rows), low, high)
    # Σ (t − m)² = Σ (t − V)² + 2 (V − m) Σ (t − V) + n (V − m)² within a block.
    squares = count * (count - 1) * one.error**2
    squares += float(2 * distance @ deviation + rows @ distance**2)
    width = mixture_boundary(squares, error, scale, PLANNED_DECISIONS * TYPICAL_VARIANCE * scale**2)
    return ConfidenceInterval.around(value, width / count)


INTERVALS: dict[str, Callable[[Summed, float], ConfidenceInterval]] = {
    "gamma": gamma,
    "normal": normal,
    "sequential": sequential,
}
"""The kinds of confidence intervals by name, the default first."""
NEED_BLOCKS = "sequential"
"""The interval that depends on sums over blocks of rows."""
