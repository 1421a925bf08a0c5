"""Confidence intervals of off-policy estimates, and the terms that an estimate averages."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.sequential.mixture_boundary import mixture_boundary


def total(values: Floats, count: Floats | None) -> float:
    """Return Σ_i c_i, the number of decisions; each row is one decision if there are no counts."""
    return float(len(values) if count is None else count.sum())


def mean(values: Floats, count: Floats | None) -> float:
    """Return Σ_i c_i v_i / Σ_i c_i; NaN without rows."""
    if not len(values):
        return float("nan")
    return float(values.mean() if count is None else count @ values / count.sum())


def variance(values: Floats, count: Floats | None) -> float:
    """Return the variance over all decisions, with the divisor Σ_i c_i."""
    if count is None:
        return float(values.var())
    distance = values - mean(values, count)
    return float(count @ distance**2 / count.sum())


def error_of_mean(values: Floats, count: Floats | None) -> float:
    """Return s / √n over n decisions, with s² of divisor n; 0 for a single decision."""
    return float(np.sqrt(variance(values, count) / total(values, count)))


def some(count: Floats | None, which: Booleans) -> Floats | None:
    """Return the counts of some rows."""
    return None if count is None else count[which]


def quantiles(values: Floats, shares: Floats, count: Floats | None) -> Floats:
    """Return quantiles over all decisions, with linear interpolation between neighbours.

    >>> quantiles(np.array([1.0, 5.0]), np.array([0.5, 1.0]), np.array([3.0, 1.0])).tolist()
    [1.0, 5.0]
    """
    if count is None:
        plain: Floats = np.quantile(values, shares)
        return plain
    order = np.argsort(values, kind="stable")
    ordered, ends = values[order], np.cumsum(count[order])
    place = np.asarray(shares) * (ends[-1] - 1)
    below = np.floor(place)
    first, second = (
        ordered[np.minimum(np.searchsorted(ends, at, side="right"), len(ends) - 1)]
        for at in (below, np.minimum(below + 1, ends[-1] - 1))
    )
    found: Floats = first + (place - below) * (second - first)
    return found


class Terms(NamedTuple):
    """An estimate Σ ``numerator`` / Σ ``denominator``, or the mean of ``numerator [n]``.

    The estimate is the mean if ``denominator [n]`` is None. ``reach`` are the smallest and the
    largest possible term, as returned by ``influence``; None if only the observed terms are known.
    ``threshold`` is the weight threshold that was used, if any, and ``without_threshold`` are the
    terms without it. ``counts [n]`` is the number of equal decisions that each term stands for;
    None if it is one. ``unseen`` are the smallest and the largest term that one more observation
    would plausibly have; None if these are ``reach``.
    """

    numerator: Floats
    denominator: Floats | None = None
    reach: tuple[float, float] | None = None
    threshold: float | None = None
    without_threshold: "Terms | None" = None
    counts: Floats | None = None
    unseen: tuple[float, float] | None = None

    @property
    def decisions(self) -> float:
        """The number of decisions."""
        return total(self.numerator, self.counts)

    @property
    def value(self) -> float:
        """The estimate; NaN if the denominators add up to 0."""
        if self.denominator is None:
            return mean(self.numerator, self.counts)
        below = mean(self.denominator, self.counts)
        return mean(self.numerator, self.counts) / below if below > 0 else float("nan")

    def influence(self) -> Floats:
        """Return the terms whose mean is, to first order, the estimate, ``[n]``.

        For a ratio v = ȳ / z̄ (delta method) these are v + (y_i − v z_i) / z̄.
        """
        if self.denominator is None:
            return self.numerator
        value, below = self.value, mean(self.denominator, self.counts)
        if not below > 0:
            return np.full(len(self.numerator), np.nan)
        terms: Floats = value + (self.numerator - value * self.denominator) / below
        return terms


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


IntervalMethod = Callable[[Sequence[Terms], float, np.random.Generator], list[ConfidenceInterval]]
"""Computes the intervals of several estimates from one log, at a level such as 0.95."""


def each(compute: Callable[[Terms], ConfidenceInterval], terms: Terms) -> ConfidenceInterval:
    """Return the interval of one estimate; with a threshold it also allows for its bias.

    A threshold moves the estimate by an unknown amount. The estimate without the threshold does not
    have this bias, so that the shortest interval which contains both intervals is wide enough.
    """
    found = compute(terms)
    if terms.without_threshold is None:
        return found
    return found.joined(compute(terms.without_threshold))


def standard_error_of_mean(terms: Floats, count: Floats | None = None) -> float:
    """Return s / √n over n decisions; infinite for a single one."""
    decisions = total(terms, count)
    if not decisions > 1:
        return float("inf")
    return float(np.sqrt(variance(terms, count) / (decisions - 1)))


def normal_quantile(level: float) -> float:
    """Return z such that a normal variable is within ±z standard deviations at this level."""
    return float(scipy.special.ndtri(0.5 + level / 2))


def normal(
    terms: Sequence[Terms], level: float, rng: np.random.Generator
) -> list[ConfidenceInterval]:
    """Return the intervals V ± z s / √n, where s² is the variance of the terms.

    For a ratio the terms are those of the delta method. The intervals are too short if rewards are
    rare, because V is then not normal.
    """
    one = partial(_normal, z=normal_quantile(level))
    return [each(one, terms_of_one) for terms_of_one in terms]


def _normal(terms: Terms, z: float) -> ConfidenceInterval:
    error = standard_error_of_mean(terms.influence(), terms.counts)
    return ConfidenceInterval.around(terms.value, z * error)


def bernstein(
    terms: Sequence[Terms], level: float, rng: np.random.Generator
) -> list[ConfidenceInterval]:
    """Return the intervals V ± √(2 s² ln(4/δ) / n) + 7 M ln(4/δ) / (3 (n − 1)), δ = 1 − level.

    This is the empirical Bernstein bound. For a mean of terms that lie in an interval of width M
    it holds for every n, not only for large n. M is known if rewards are bounded and weights are
    clipped. Without clipping M is computed from the largest observed weight, and for a ratio the
    terms are those of ``influence``: in both cases the bound holds only approximately.

    Reference: Maurer and Pontil (2009), theorem 4, for both sides.
    """
    one = partial(_bernstein, log=np.log(4 / (1 - level)))
    return [each(one, terms_of_one) for terms_of_one in terms]


def _bernstein(terms: Terms, log: float) -> ConfidenceInterval:
    influence = terms.influence()
    count = terms.decisions
    if count < 2:
        return ConfidenceInterval.around(terms.value, float("inf"))
    low, high = terms.reach if terms.reach is not None else (influence.min(), influence.max())
    spread = np.sqrt(2 * log) * standard_error_of_mean(influence, terms.counts)
    half = spread + 7 * (high - low) * log / (3 * (count - 1))
    return ConfidenceInterval.around(terms.value, float(half))


RESAMPLES = 1000
"""Resamples of the bootstrap: enough for two digits of a 95 % interval."""
BLOCKS = 8192
"""A log with more rows than this is resampled in about this many blocks of rows: 8192 of them are
enough for percentiles, and the cost no longer grows with the number of rows."""
RESAMPLES_PER_CHUNK = 64
"""Resamples whose counts are in memory together: 64 × 8192 counts take 4 MB."""


def bootstrap(
    terms: Sequence[Terms], level: float, rng: np.random.Generator
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
    # An estimate with a threshold needs the interval of the estimate without the threshold, too.
    parts = [part for one in terms for part in (one, one.without_threshold) if part is not None]
    found = iter(_percentile_intervals(parts, level, rng))
    return [
        next(found) if one.without_threshold is None else next(found).joined(next(found))
        for one in terms
    ]


def _percentile_intervals(
    terms: Sequence[Terms], level: float, rng: np.random.Generator
) -> list[ConfidenceInterval]:
    sums = np.stack([_block_sums(column) for one in terms for column in _columns(one)], axis=1)
    count = len(sums)
    if terms[0].decisions < 2:
        return [ConfidenceInterval.around(one.value, float("inf")) for one in terms]
    values = np.empty((RESAMPLES, len(terms)))
    for first in range(0, RESAMPLES, RESAMPLES_PER_CHUNK):
        size = min(RESAMPLES_PER_CHUNK, RESAMPLES - first)
        counts = _resampled(count, terms[0].counts, size, rng)
        numerator, denominator = np.moveaxis((counts @ sums).reshape(size, -1, 2), 2, 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            values[first : first + size] = numerator / denominator
    return [_percentiles(column, level) for column in values.T]


def _resampled(
    units: int, decisions: Floats | None, size: int, rng: np.random.Generator
) -> NDArray[Any]:
    """Return how often each resample draws each row or block, ``[size, units]``.

    ``decisions`` are those of the rows. Rows are drawn for each of their decisions, over their
    number, because the columns are already multiplied by it; blocks are drawn as a whole.
    """
    if decisions is not None and len(decisions) == units:
        total = decisions.sum()
        return rng.multinomial(round(total), decisions / total, size=size) / decisions
    drawn = rng.integers(units, size=(size, units)) + units * np.arange(size)[:, None]
    return np.bincount(drawn.ravel(), minlength=size * units).reshape(size, units)


def _percentiles(values: Floats, level: float) -> ConfidenceInterval:
    known = values[np.isfinite(values)]
    if 2 * known.size < values.size:
        return ConfidenceInterval(float("nan"), float("nan"))
    low, high = np.quantile(known, [0.5 - level / 2, 0.5 + level / 2])
    return ConfidenceInterval(float(low), float(high))


def _columns(terms: Terms) -> tuple[Floats, Floats]:
    below = np.ones(len(terms.numerator)) if terms.denominator is None else terms.denominator
    if terms.counts is None:
        return terms.numerator, below
    return terms.counts * terms.numerator, terms.counts * below


def _block_sums(values: Floats) -> Floats:
    """Return the rows, or if there are many the sums of blocks of equal length.

    The last block may be shorter.
    """
    if len(values) <= BLOCKS:
        return values
    return np.add.reduceat(values, np.arange(0, len(values), -(-len(values) // BLOCKS)))


PSEUDO_OBSERVATION = 0.5
"""Share of the largest possible term that is added, at each end, to what was observed. 1 would make
the interval of a count exact and conservative, 1/2 corresponds to mid-p intervals. The value was
chosen by ``benchmarks/logs/rare_rewards.py`` among 0, 1/2 and 1. If all terms are equal it is 1:
with 1/2, a log without a reward would miss an expected number of 1.9 rewards in 15 of 100 logs."""
EQUAL_TERMS = 1e-12
"""Terms are equal if their standard deviation is at most this share of their mean, which rounding
errors cause."""
NORMAL_SHAPE = 1e8
"""Above this shape a gamma distribution is computed as a normal one with a correction for its
skewness, which is then at most 0.0002."""


def gamma(
    terms: Sequence[Terms], level: float, rng: np.random.Generator
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
    possible term.

    If rewards are common, κ₃ and u vanish against κ₂, and the interval is the normal one. In a log
    without any reward u is a whole observation, and the upper end is the exact one of a count of 0.
    With u = c / 2 the upper end agrees with the Cornish-Fisher expansion of the studentized mean to
    the second order.

    Reference: Fay and Feuer (1997), Confidence intervals for directly standardized rates; Fay and
    Kim (2017) for mid-p; Hall (1992), The bootstrap and Edgeworth expansion, for the expansion.
    *Departs from the papers:* the unit is matched to the third cumulant, and the distribution is
    shifted, so that one formula applies also to terms that are not counts, such as those of doubly
    robust estimates.
    """
    one = partial(_gamma, tail=(1 - level) / 2)
    return [each(one, terms_of_one) for terms_of_one in terms]


def _gamma(terms: Terms, tail: float) -> ConfidenceInterval:
    influence, value = terms.influence(), terms.value
    count = terms.decisions
    if count < 2:
        return ConfidenceInterval.around(value, float("inf"))
    distance = influence - value
    counted = distance if terms.counts is None else terms.counts * distance
    variance = float(distance @ counted) / (count * (count - 1))
    third = float(distance**2 @ counted) / count**3
    low, high = terms.unseen or terms.reach or (value, value)
    equal = variance * count <= (EQUAL_TERMS * value) ** 2
    share = 1.0 if equal else PSEUDO_OBSERVATION
    up, down = (share * max(reach, 0.0) / count for reach in (high - value, value - low))
    return ConfidenceInterval(
        value - down - gamma_quantile(1 - tail, variance + down**2, down**3 - third),
        value + up + gamma_quantile(1 - tail, variance + up**2, third + up**3),
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
    terms: Sequence[Terms], level: float, rng: np.random.Generator
) -> list[ConfidenceInterval]:
    """Return intervals that contain the truth at all looks together, with probability ``level``.

    One may look at a growing log as often as one likes, and stop at any time: an interval for one
    look would miss the truth at some look almost surely. V ± u / n, where u bounds |Σ (t_i − V)|
    at all n together. It follows from Σ (t_i − m_i)², where m_i is the mean of the terms before,
    and from the range of the terms. The rows must be in the order of time, and the policy must
    not have learned from them.

    The bound holds for terms that do not depend on later rows and whose range is known: those of
    ``ips`` and ``clipped`` with a fixed threshold. Others (ratios, models that are fitted to the
    log, thresholds that are chosen from it) depend on all rows, so that it holds approximately. If
    no range is known, the bound is the one for large samples, from the variance of the terms.

    Reference: Howard, Ramdas, McAuliffe and Sekhon (2021), for sums of bounded terms;
    Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2024), for large samples.
    """
    one = partial(_sequential, error=1 - level)
    return [each(one, terms_of_one) for terms_of_one in terms]


def _sequential(terms: Terms, error: float) -> ConfidenceInterval:
    influence, value = terms.influence(), terms.value
    decisions = terms.decisions
    if decisions < 2 or not np.isfinite(influence).all():
        return ConfidenceInterval.around(value, float("inf") if value == value else value)
    low, high = (0.0, 0.0) if terms.reach is None else terms.reach
    scale = high - low
    if not scale > 0:
        deviation = standard_error_of_mean(influence, terms.counts) * np.sqrt(decisions)
        width = deviation * mixture_boundary(decisions, error, 0.0, PLANNED_DECISIONS)
        return ConfidenceInterval.around(value, float(width / decisions))
    counts = np.ones(len(influence)) if terms.counts is None else terms.counts
    squares = float(counts @ (influence - _means_before(influence, counts, low, high)) ** 2)
    planned = PLANNED_DECISIONS * TYPICAL_VARIANCE * scale**2
    width = mixture_boundary(squares, error, scale, planned)
    return ConfidenceInterval.around(value, width / decisions)


def _means_before(terms: Floats, counts: Floats, low: float, high: float) -> Floats:
    """Return the mean of the terms before each row; before the first it is the middle or 0."""
    start = float(np.clip(0.0, low, high))
    sums = np.concatenate([[start], start + np.cumsum(counts * terms)[:-1]])
    numbers = np.concatenate([[1.0], 1.0 + np.cumsum(counts)[:-1]])
    means: Floats = np.clip(sums / numbers, low, high)
    return means


def clustered(terms: Terms, cluster: Integers) -> Terms:
    """Return terms of whole clusters that have the same mean, and the variance between clusters.

    With G clusters of n rows the term of a cluster is V + (G / n) Σ_i (t_i − V) over its rows, so
    that only clusters, such as users, have to be independent. ``cluster [n]`` is the number of the
    cluster of each row, from 0. The largest possible term is that of the largest cluster.

    One more reward is rarely a whole cluster of rewards: ``unseen`` counts as many rows as the
    design effect, var(clustered) / var(independent rows). It is 1 if the rows of a cluster are
    independent, and the size of a cluster if they are equal. Without any variance it is not known,
    and the largest cluster is assumed.

    Reference: Liang and Zeger (1986), whose cluster-robust variance this is; Kish (1965), Survey
    sampling, for the design effect.
    """
    influence, value = terms.influence(), terms.value
    sizes = np.bincount(cluster, weights=terms.counts)
    scale = len(sizes) / terms.decisions
    distance = influence - value if terms.counts is None else terms.counts * (influence - value)
    summed: Floats = np.bincount(cluster, weights=distance).astype(np.float64)
    reach = unseen = None
    if terms.reach is not None:
        independent = float(distance @ (influence - value))
        effect = float(summed @ summed) / independent if independent > 0 else np.inf
        most = float(sizes.max())
        reach, unseen = (
            (value + times * (terms.reach[0] - value), value + times * (terms.reach[1] - value))
            for times in (scale * most, scale * min(max(effect, 1.0), most))
        )
    plain = terms.without_threshold
    return Terms(
        value + scale * summed,
        None,
        reach,
        terms.threshold,
        None if plain is None else clustered(plain, cluster),
        unseen=unseen,
    )


SMALLEST_EIGENVALUE = 1e-10
"""Relative size below which a direction of the controls is taken to be empty."""


def adjusted(
    terms: Terms, weight: Floats, covariates: Floats, sampling_weight: Floats | None = None
) -> Terms:
    """Return the terms t_i − θ · z_i, with controls z_i = (w_i − 1) (1, x_i).

    x_i are ``covariates [n, C]`` that were known before the decision, such as the visits of the
    week before. Weights of a policy have the mean 1 given x, so that E[z] = 0 and the adjustment
    does not change the expectation, up to order 1/n; θ is the regression of the terms on z, which
    removes the part of the noise that x explains. For the difference of two policies this is CUPED.
    If the log is a sample, z_i is multiplied by the ``sampling_weight`` of the row.

    Reference: Deng, Xu, Kohavi and Walker (2013), Improving the sensitivity of online controlled
    experiments by utilizing pre-experiment data.
    """
    influence, counts = terms.influence(), terms.counts
    share = np.full(len(influence), 1 / len(influence)) if counts is None else counts / counts.sum()
    centred = covariates - share @ covariates
    spread = np.sqrt(share @ centred**2)
    standardized = centred / np.where(spread > 0, spread, 1.0)
    controls = (weight - 1)[:, None] * np.column_stack([np.ones(len(weight)), standardized])
    if sampling_weight is not None:
        controls *= (sampling_weight / (share @ sampling_weight))[:, None]
    distance = controls - share @ controls
    gram = distance.T @ (share[:, None] * distance)
    moment = distance.T @ (share * (influence - share @ influence))
    theta = np.linalg.pinv(gram, rcond=SMALLEST_EIGENVALUE, hermitian=True) @ moment
    change = -controls @ theta
    reach = terms.reach
    if reach is not None:
        reach = (reach[0] + float(change.min()), reach[1] + float(change.max()))
    plain = terms.without_threshold
    return Terms(
        influence + change,
        None,
        reach,
        terms.threshold,
        None if plain is None else adjusted(plain, weight, covariates, sampling_weight),
        counts,
    )


def sampled(terms: Terms, weight: Floats) -> Terms:
    """Return the terms of Σ_i s_i t_i / Σ_i s_i, where s_i is the sampling weight of a row.

    s_i is 1 / (probability with which the row was kept), so that the sums estimate those of the
    whole log. A ratio Σ_i y_i / Σ_i z_i becomes Σ_i s_i y_i / Σ_i s_i z_i. The interval is that of
    the ratio: a row with a weight of 10 is one observation, not ten as with a count of 10.

    Reference: Hájek (1971), for the ratio of weighted sums.
    """
    below = weight if terms.denominator is None else weight * terms.denominator
    plain = terms.without_threshold
    found = Terms(
        weight * terms.numerator,
        below,
        None,
        terms.threshold,
        None if plain is None else sampled(plain, weight),
        terms.counts,
    )
    if terms.reach is None:
        return found
    value, most = found.value, float(weight.max()) / mean(weight, terms.counts)
    low, high = (value + most * (end - value) for end in terms.reach)
    return found._replace(reach=(low, high))


INTERVALS: dict[str, IntervalMethod] = {
    "gamma": gamma,
    "normal": normal,
    "bootstrap": bootstrap,
    "bernstein": bernstein,
    "sequential": sequential,
}
"""The kinds of confidence intervals by name, the default first."""
