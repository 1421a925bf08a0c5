"""The contract of a kind of confidence intervals."""

from collections.abc import Callable, Sequence

import numpy as np
import scipy

from submax.core.arrays import Floats
from submax.evaluation.contracts.counts import total, variance
from submax.evaluation.contracts.terms import Terms
from submax.evaluation.intervals.confidence_interval import ConfidenceInterval

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
