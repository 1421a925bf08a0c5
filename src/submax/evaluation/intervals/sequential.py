"""Confidence intervals that hold at all looks together."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from submax.core.arrays import Floats
from submax.evaluation.contracts.terms import Terms
from submax.evaluation.intervals.confidence_interval import ConfidenceInterval
from submax.evaluation.intervals.interval_method import each, standard_error_of_mean
from submax.sequential.mixture_boundary import mixture_boundary

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
