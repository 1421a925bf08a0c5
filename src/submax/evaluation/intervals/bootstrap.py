"""Confidence intervals by the bootstrap."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats
from submax.evaluation.contracts.terms import Terms
from submax.evaluation.intervals.confidence_interval import ConfidenceInterval

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
