"""Confidence intervals of off-policy estimates."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats
from submax.evaluation.terms import Terms

RESAMPLES = 1000
BLOCKS = 8192
"""More rows than this are resampled in so many blocks."""
AT_ONCE = 64
"""Resamples whose counts are held at a time."""


class Interval(NamedTuple):
    """Two ends."""

    low: float
    high: float


Method = Callable[[Sequence[Terms], float, np.random.Generator], list[Interval]]
"""The intervals of several estimates of one log, at a level such as 0.95."""


def normal(terms: Sequence[Terms], level: float, rng: np.random.Generator) -> list[Interval]:
    """V ± z s / √n, s² the variance of the terms; of a ratio, by the delta method.

    The bias that a threshold may have brought, at its worst at the same level, is added in
    quadrature; so it is in the other kinds of intervals.
    """
    z = _quantile(level)
    return [
        _allowing(_around(one.value, z * _standard_error(one.influence())), one, level)
        for one in terms
    ]


def bernstein(terms: Sequence[Terms], level: float, rng: np.random.Generator) -> list[Interval]:
    """V ± √(2 s² ln(4/δ) / n) + 7 M ln(4/δ) / (3 (n − 1)), δ = 1 − level: empirical Bernstein.

    For a mean of terms that lie in an interval of width M it holds for every n, not only for large
    ones. M is known where rewards are bounded and weights clipped; without clipping it is that of
    the largest weight seen, and of a ratio the terms are those of ``influence``: there the promise
    holds as far as these do.

    Reference: Maurer and Pontil (2009), theorem 4, for both sides.
    """
    log = np.log(4 / (1 - level))
    return [_allowing(_bernstein(one, log), one, level) for one in terms]


def bootstrap(terms: Sequence[Terms], level: float, rng: np.random.Generator) -> list[Interval]:
    """Percentiles of the estimate over resampled rows, the same resamples for all estimates.

    Beyond 8192 rows blocks of neighbours are resampled, of equal length: as good for so many, and
    much faster. Resamples in which a denominator is 0 are left out; where they are most, the ends
    are NaN.

    Reference: Efron (1979); Künsch (1989) for blocks.
    """
    sums = np.stack([_block_sums(column) for one in terms for column in _columns(one)], axis=1)
    count = len(sums)
    if count < 2:
        return [_around(one.value, float("inf")) for one in terms]
    values = np.empty((RESAMPLES, len(terms)))
    for first in range(0, RESAMPLES, AT_ONCE):
        size = min(AT_ONCE, RESAMPLES - first)
        drawn = rng.integers(count, size=(size, count)) + count * np.arange(size)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=size * count).reshape(size, count)
        numerator, denominator = np.moveaxis((counts @ sums).reshape(size, -1, 2), 2, 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            values[first : first + size] = numerator / denominator
    found = [_percentiles(column, level) for column in values.T]
    return [_allowing(ends, one, level) for ends, one in zip(found, terms, strict=True)]


INTERVALS: dict[str, Method] = {"normal": normal, "bootstrap": bootstrap, "bernstein": bernstein}


def _quantile(level: float) -> float:
    """How many standard errors around a normal mean have this probability."""
    from scipy.special import ndtri

    return float(ndtri(0.5 + level / 2))


def _allowing(ends: Interval, terms: Terms, level: float) -> Interval:
    """Ends moved apart by the bias that a threshold may have."""
    bias, value = terms.bias(_quantile(level)), terms.value
    if bias == 0:
        return ends
    return Interval(
        value - float(np.hypot(value - ends.low, bias)),
        value + float(np.hypot(ends.high - value, bias)),
    )


def _percentiles(values: Floats, level: float) -> Interval:
    known = values[np.isfinite(values)]
    if 2 * known.size < values.size:
        return Interval(float("nan"), float("nan"))
    low, high = np.quantile(known, [0.5 - level / 2, 0.5 + level / 2])
    return Interval(float(low), float(high))


def _around(value: float, half: float) -> Interval:
    return Interval(value - half, value + half)


def _standard_error(terms: Floats) -> float:
    return float(terms.std(ddof=1) / np.sqrt(len(terms))) if len(terms) > 1 else float("inf")


def _bernstein(terms: Terms, log: float) -> Interval:
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
    """The rows themselves, or the sums of blocks of equal length and of a shorter last one."""
    if len(values) <= BLOCKS:
        return values
    return np.add.reduceat(values, np.arange(0, len(values), -(-len(values) // BLOCKS)))
