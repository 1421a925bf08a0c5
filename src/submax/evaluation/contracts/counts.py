"""Means, variances and quantiles over rows that stand for several equal decisions."""

import numpy as np

from submax.core.arrays import Booleans, Floats


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
