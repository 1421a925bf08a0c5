"""Means and scales of the numbers of a context, which a few absurd values do not decide."""

import numpy as np

from submax.core.arrays import Floats

NEAREST_SHARE = 0.9
"""The usual distance from the median is the mean over this share of the rows, the nearest ones."""
LARGEST_DISTANCE = 20.0
"""Values count as at most this many usual distances away from the median. Of a million normal
numbers none is as far away as that, while one age of 1e6 among 100 would hide all others."""
LEAST_DEVIATION = 1e-9
"""A number whose deviation is below this share of its largest value does not vary."""


def standardization(context: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """The mean of each number, and one divided by its deviation, or 0 if it does not vary."""
    if not len(context):
        return np.zeros(context.shape[1]), np.zeros(context.shape[1])
    share = weight / weight.sum()
    usual = _without_outliers(context, share)
    # In units of the largest number squares neither overflow nor vanish.
    largest = np.maximum(np.abs(usual).max(axis=0, initial=0.0), 1e-300)
    mean = share @ (usual / largest)
    deviation = np.sqrt(share @ (usual / largest - mean) ** 2)
    varies = deviation > LEAST_DEVIATION
    scale = np.where(varies, 1.0 / (np.where(varies, deviation, 1.0) * largest), 0.0)
    return mean * largest, scale


def _without_outliers(values: Floats, share: Floats) -> Floats:
    """The same values, with those far away moved nearer to the median of their column."""
    median = _mean_of_lowest(values, share, 0.5)[1]
    with np.errstate(over="ignore"):
        # If nothing larger than the largest number is too far away, nothing is cut off.
        distance = np.minimum(np.abs(values - median), np.finfo(np.float64).max)
        most = LARGEST_DISTANCE * _mean_of_lowest(distance, share, NEAREST_SHARE)[0]
        # If nearly all values are equal, as those of a rare category, the others are no outliers.
        most = np.where(most > 0, most, np.inf)
        cut: Floats = np.clip(values, median - most, median + most)
    return cut


def _mean_of_lowest(values: Floats, share: Floats, part: float) -> tuple[Floats, Floats]:
    """The mean of the lowest ``part`` of each column, and the highest value among them.

    Rows count by their ``share``, so that a row of weight 2 counts as two rows.
    """
    order = np.argsort(values, axis=0, kind="stable")
    ordered = np.take_along_axis(values, order, axis=0)
    before = np.cumsum(share[order], axis=0) - share[order]
    counted = np.clip(part - before, 0.0, share[order])
    last = np.argmax(before + share[order] >= part * (1 - 1e-12), axis=0)
    highest = np.take_along_axis(ordered, last[None], axis=0)[0]
    mean: Floats = np.einsum("nd,nd->d", counted, ordered) / part
    return mean, highest
