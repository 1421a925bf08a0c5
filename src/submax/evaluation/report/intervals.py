"""Confidence intervals of off-policy estimates."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats
from submax.evaluation.terms import Terms

RESAMPLES = 1000
"""Resamples of the bootstrap: enough for two digits of a 95 % interval."""
BLOCKS = 8192
"""A log with more rows than this is resampled in about this many blocks of rows: 8192 of them are
enough for percentiles, and the cost no longer grows with the number of rows."""
RESAMPLES_PER_CHUNK = 64
"""Resamples whose counts are in memory together: 64 × 8192 counts take 4 MB."""


class ConfidenceInterval(NamedTuple):
    """The lower and the upper end of a confidence interval."""

    low: float
    high: float


IntervalMethod = Callable[[Sequence[Terms], float, np.random.Generator], list[ConfidenceInterval]]
"""Computes the intervals of several estimates from one log, at a level such as 0.95."""


def normal(
    terms: Sequence[Terms], level: float, rng: np.random.Generator
) -> list[ConfidenceInterval]:
    """Return the intervals V ± z s / √n, where s² is the variance of the terms.

    For a ratio the terms are those of the delta method. As in all kinds of intervals, an upper
    bound of the bias that a threshold may have, at the same level, is added in quadrature.
    """
    z = _quantile(level)
    return [
        _widened_by_bias(_around(one.value, z * _standard_error(one.influence())), one, level)
        for one in terms
    ]


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
    log = np.log(4 / (1 - level))
    return [_widened_by_bias(_bernstein(one, log), one, level) for one in terms]


def bootstrap(
    terms: Sequence[Terms], level: float, rng: np.random.Generator
) -> list[ConfidenceInterval]:
    """Return percentiles of the estimates over resampled rows.

    All estimates use the same resamples. If there are more than 8192 rows, blocks of consecutive
    rows, all of the same length, are resampled: this is much faster, and as accurate with so many
    blocks. Resamples in which a denominator is 0 are left out; if these are the majority, both
    ends are NaN.

    Reference: Efron (1979); Künsch (1989) for blocks.
    """
    sums = np.stack([_block_sums(column) for one in terms for column in _columns(one)], axis=1)
    count = len(sums)
    if count < 2:
        return [_around(one.value, float("inf")) for one in terms]
    values = np.empty((RESAMPLES, len(terms)))
    for first in range(0, RESAMPLES, RESAMPLES_PER_CHUNK):
        size = min(RESAMPLES_PER_CHUNK, RESAMPLES - first)
        drawn = rng.integers(count, size=(size, count)) + count * np.arange(size)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=size * count).reshape(size, count)
        numerator, denominator = np.moveaxis((counts @ sums).reshape(size, -1, 2), 2, 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            values[first : first + size] = numerator / denominator
    intervals = [_percentiles(column, level) for column in values.T]
    return [_widened_by_bias(ends, one, level) for ends, one in zip(intervals, terms, strict=True)]


INTERVALS: dict[str, IntervalMethod] = {
    "normal": normal,
    "bootstrap": bootstrap,
    "bernstein": bernstein,
}


def _quantile(level: float) -> float:
    """Return z such that a normal variable is within ±z standard deviations at this level."""
    from scipy.special import ndtri

    return float(ndtri(0.5 + level / 2))


def _widened_by_bias(ends: ConfidenceInterval, terms: Terms, level: float) -> ConfidenceInterval:
    """Return the interval widened by the largest plausible bias of the estimator's threshold."""
    bias, value = terms.bias(_quantile(level)), terms.value
    if bias == 0:
        return ends
    return ConfidenceInterval(
        value - float(np.hypot(value - ends.low, bias)),
        value + float(np.hypot(ends.high - value, bias)),
    )


def _percentiles(values: Floats, level: float) -> ConfidenceInterval:
    known = values[np.isfinite(values)]
    if 2 * known.size < values.size:
        return ConfidenceInterval(float("nan"), float("nan"))
    low, high = np.quantile(known, [0.5 - level / 2, 0.5 + level / 2])
    return ConfidenceInterval(float(low), float(high))


def _around(value: float, half: float) -> ConfidenceInterval:
    return ConfidenceInterval(value - half, value + half)


def _standard_error(terms: Floats) -> float:
    return float(terms.std(ddof=1) / np.sqrt(len(terms))) if len(terms) > 1 else float("inf")


def _bernstein(terms: Terms, log: float) -> ConfidenceInterval:
    influence = terms.influence()
    count = len(influence)
    if count < 2:
        return _around(terms.value, float("inf"))
    width = terms.width if terms.width is not None else float(np.ptp(influence))
    half = np.sqrt(2 * log) * _standard_error(influence) + 7 * width * log / (3 * (count - 1))
    return _around(terms.value, float(half))


def _columns(terms: Terms) -> tuple[Floats, Floats]:
    if terms.denominator is None:
        return terms.numerator, np.ones(len(terms.numerator))
    return terms.numerator, terms.denominator


def _block_sums(values: Floats) -> Floats:
    """Return the rows, or if there are many the sums of blocks of equal length.

    The last block may be shorter.
    """
    if len(values) <= BLOCKS:
        return values
    return np.add.reduceat(values, np.arange(0, len(values), -(-len(values) // BLOCKS)))
