"""Confidence intervals of off-policy estimates, from a few sums over the rows."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from submax.core.arrays import Floats
from submax.sequential.mixture_boundary import mixture_boundary


class Blocks(NamedTuple):
    """Sums over blocks of rows (single rows, or clusters) in the order of time, each ``[B]``.

    An estimate is Σ ``numerator`` / Σ ``denominator`` + Σ ``offset`` / Σ ``decisions``, and
    ``deviation`` is the sum of the terms of a block minus the value. ``divisible`` says that each
    block is one row, which may stand for several equal decisions.
    """

    numerator: Floats
    denominator: Floats
    offset: Floats
    decisions: Floats
    deviation: Floats
    divisible: bool = False


class Summed(NamedTuple):
    """An estimate, and all that its intervals depend on.

    The ``value`` V is the mean of n terms t_i, n the number of ``decisions`` (or of clusters).
    ``error`` is its standard error, ``third`` its third cumulant Σ (t_i − V)³ / n³, and ``freedom``
    the degrees of freedom of the error. ``reach`` are the smallest and the largest possible term,
    None if only the ``observed`` ones are known. ``unseen`` are the smallest and the largest term
    that one more observation would plausibly have; None if these are ``reach``. ``threshold`` is
    that of the weights, if any. ``blocks`` are needed by some intervals alone.
    """

    value: float
    decisions: float
    error: float
    third: float
    reach: tuple[float, float] | None
    observed: tuple[float, float]
    unseen: tuple[float, float] | None = None
    freedom: float = float("inf")
    blocks: Blocks | None = None
    threshold: float | None = None


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


IntervalMethod = Callable[[Sequence[Summed], float, np.random.Generator], list[ConfidenceInterval]]
"""Computes the intervals of several estimates from one log, at a level such as 0.95."""


def normal_quantile(level: float) -> float:
    """Return z such that a normal variable is within ±z standard deviations at this level."""
    return float(scipy.special.ndtri(0.5 + level / 2))


def student_factor(level: float, freedom: float) -> float:
    """Return t / z, the quantiles of Student's and of the normal distribution at a level."""
    if not np.isfinite(freedom):
        return 1.0
    return float(scipy.special.stdtrit(freedom, 0.5 + level / 2)) / normal_quantile(level)


def normal(
    estimates: Sequence[Summed], level: float, rng: np.random.Generator
) -> list[ConfidenceInterval]:
    """Return the intervals V ± z s / √n, where s² is the variance of the terms.

    For a ratio the terms are those of the delta method. For clusters z is a quantile of Student's
    distribution. The intervals are too short if rewards are rare, because V is then not normal.
    """
    z = normal_quantile(level)
    return [
        ConfidenceInterval.around(one.value, z * student_factor(level, one.freedom) * one.error)
        for one in estimates
    ]


def bernstein(
    estimates: Sequence[Summed], level: float, rng: np.random.Generator
) -> list[ConfidenceInterval]:
    """Return the intervals V ± √(2 s² ln(4/δ) / n) + 7 M ln(4/δ) / (3 (n − 1)), δ = 1 − level.

    This is the empirical Bernstein bound. For a mean of terms that lie in an interval of width M
    it holds for every n, not only for large n. M is known if rewards are bounded and weights are
    clipped. Without clipping M is computed from the largest observed weight, and for a ratio the
    terms are those of the delta method: in both cases the bound holds only approximately.

    Reference: Maurer and Pontil (2009), theorem 4, for both sides.
    """
    return [_bernstein(one, np.log(4 / (1 - level))) for one in estimates]


def _bernstein(one: Summed, log: float) -> ConfidenceInterval:
    if one.decisions < 2:
        return ConfidenceInterval.around(one.value, float("inf"))
    low, high = one.observed if one.reach is None else one.reach
    half = np.sqrt(2 * log) * one.error + 7 * (high - low) * log / (3 * (one.decisions - 1))
    return ConfidenceInterval.around(one.value, float(half))


RESAMPLES = 1000
"""Resamples of the bootstrap: enough for two digits of a 95 % interval."""
BLOCKS = 8192
"""A log with more rows than this is resampled in about this many blocks of rows: 8192 of them are
enough for percentiles, and the cost no longer grows with the number of rows."""
RESAMPLES_PER_CHUNK = 64
"""Resamples whose counts are in memory together: 64 × 8192 counts take 4 MB."""


def bootstrap(
    estimates: Sequence[Summed], level: float, rng: np.random.Generator
) -> list[ConfidenceInterval]:
    """Return percentiles of the estimates over resampled rows.

    All estimates use the same resamples. If there are more than 8192 rows, blocks of consecutive
    rows, all of the same length, are resampled: this is much faster, and as accurate with so many
    blocks. Resamples in which a denominator is 0 are left out; if these are the majority, both
    ends are NaN. If rewards are rare, the intervals are too short, because a resample contains no
    reward that the log does not contain. A row that stands for several decisions is drawn as often
    as these decisions would be.

    Reference: Efron (1979); Künsch (1989) for blocks.
    """
    blocks = [_joined_blocks(one) for one in estimates]
    if blocks[0].decisions.sum() < 2:
        return [ConfidenceInterval.around(one.value, float("inf")) for one in estimates]
    sums = np.stack([column for one in blocks for column in one[:4]], axis=1)
    values = np.empty((RESAMPLES, len(estimates)))
    for first in range(0, RESAMPLES, RESAMPLES_PER_CHUNK):
        size = min(RESAMPLES_PER_CHUNK, RESAMPLES - first)
        drawn = (_resampled(blocks[0], size, rng) @ sums).reshape(size, -1, 4)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = drawn[..., 0] / drawn[..., 1]
            values[first : first + size] = ratio + drawn[..., 2] / drawn[..., 3]
    return [_percentiles(column, level) for column in values.T]


def _joined_blocks(one: Summed) -> Blocks:
    """Return at most ``BLOCKS`` blocks; the last may be shorter."""
    blocks = one.blocks
    if blocks is None:
        raise ValueError("a bootstrap needs sums over blocks of rows")
    if len(blocks.decisions) <= BLOCKS:
        return blocks
    first = np.arange(0, len(blocks.decisions), -(-len(blocks.decisions) // BLOCKS))
    columns = [np.add.reduceat(column, first) for column in blocks[:5]]
    return Blocks(columns[0], columns[1], columns[2], columns[3], columns[4])


def _resampled(blocks: Blocks, size: int, rng: np.random.Generator) -> NDArray[Any]:
    """Return how often each resample draws each block, ``[size, B]``.

    Rows are drawn for each of their decisions, over their number, because the columns are already
    multiplied by it; blocks of several rows are drawn as a whole.
    """
    count, decisions = len(blocks.decisions), blocks.decisions
    if blocks.divisible:
        total = decisions.sum()
        return rng.multinomial(round(total), decisions / total, size=size) / decisions
    drawn = rng.integers(count, size=(size, count)) + count * np.arange(size)[:, None]
    return np.bincount(drawn.ravel(), minlength=size * count).reshape(size, count)


def _percentiles(values: Floats, level: float) -> ConfidenceInterval:
    known = values[np.isfinite(values)]
    if 2 * known.size < values.size:
        return ConfidenceInterval(float("nan"), float("nan"))
    low, high = np.quantile(known, [0.5 - level / 2, 0.5 + level / 2])
    return ConfidenceInterval(float(low), float(high))


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


def gamma(
    estimates: Sequence[Summed], level: float, rng: np.random.Generator
) -> list[ConfidenceInterval]:
    """Return intervals whose ends are quantiles of shifted gamma distributions.

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
    return [_gamma(one, level) for one in estimates]


def _gamma(one: Summed, level: float) -> ConfidenceInterval:
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


def sequential(
    estimates: Sequence[Summed], level: float, rng: np.random.Generator
) -> list[ConfidenceInterval]:
    """Return intervals that contain the truth at all looks together, with probability ``level``.

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
    return [_sequential(one, 1 - level) for one in estimates]


def _sequential(one: Summed, error: float) -> ConfidenceInterval:
    value, count = one.value, one.decisions
    if count < 2 or not np.isfinite(one.error):
        return ConfidenceInterval.around(value, float("inf") if value == value else value)
    low, high = (0.0, 0.0) if one.reach is None else one.reach
    scale = high - low
    if not scale > 0 or one.blocks is None:
        width = one.error * np.sqrt(count)
        width *= mixture_boundary(count, error, 0.0, PLANNED_DECISIONS)
        return ConfidenceInterval.around(value, float(width / count))
    rows, deviation = one.blocks.decisions, one.blocks.deviation
    sums = deviation + value * rows
    start = float(np.clip(0.0, low, high))
    before = np.concatenate([[start], start + np.cumsum(sums)[:-1]])
    distance = value - np.clip(before / (1.0 + np.cumsum(rows) - rows), low, high)
    # Σ (t − m)² = Σ (t − V)² + 2 (V − m) Σ (t − V) + n (V − m)² within a block.
    squares = count * (count - 1) * one.error**2
    squares += float(2 * distance @ deviation + rows @ distance**2)
    width = mixture_boundary(squares, error, scale, PLANNED_DECISIONS * TYPICAL_VARIANCE * scale**2)
    return ConfidenceInterval.around(value, width / count)


INTERVALS: dict[str, IntervalMethod] = {
    "gamma": gamma,
    "normal": normal,
    "bootstrap": bootstrap,
    "bernstein": bernstein,
    "sequential": sequential,
}
"""The kinds of confidence intervals by name, the default first."""
NEED_BLOCKS = ("bootstrap", "sequential")
"""Intervals that depend on sums over blocks of rows."""
