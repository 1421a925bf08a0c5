"""Standardization of context variables that is robust to a few absurd values."""

import numpy as np

from submax.core.arrays import Floats

NEAREST_SHARE = 0.9
"""The usual distance from the median is the mean over this share of the rows, the nearest ones."""
LARGEST_DISTANCE = 20.0
"""For mean and deviation, values are clipped at this many usual distances from the median. None of
a million normal numbers is as far away, while one age of 1e6 among 100 would hide all others."""
LEAST_DEVIATION = 1e-9
"""A number whose deviation is below this share of its largest value counts as constant."""
FARTHEST = 10.0
"""Standardized numbers are clipped at this many deviations from their mean."""
_LOWEST, _HIGHEST = np.array(-FARTHEST), np.array(FARTHEST)
"""The same limits as arrays, so that numpy need not convert them at every decision."""


def standardized(
    context: Floats, shift: Floats, scale: Floats, out: Floats | None = None
) -> Floats:
    """Return z = (context − shift) · scale, clipped at ±10: ``[..., D] -> [..., D]``.

    If ``out`` is given, the result is written into it.
    """
    z: Floats = np.subtract(context, shift, out=out)
    np.multiply(z, scale, out=z)
    np.minimum(np.maximum(z, _LOWEST, out=z), _HIGHEST, out=z)
    return z


def standardization(context: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return the mean of each number, and 1 / its deviation, or 0 if the number is constant."""
    if not len(context):
        return np.zeros(context.shape[1]), np.zeros(context.shape[1])
    share = weight / weight.sum()
    usual = _without_outliers(context, share)
    # Relative to the largest value, squares neither overflow nor underflow.
    largest = np.maximum(np.abs(usual).max(axis=0, initial=0.0), 1e-300)
    mean = share @ (usual / largest)
    deviation = np.sqrt(share @ (usual / largest - mean) ** 2)
    varies = deviation > LEAST_DEVIATION
    scale = np.where(varies, 1.0 / (np.where(varies, deviation, 1.0) * largest), 0.0)
    return mean * largest, scale


def _without_outliers(values: Floats, share: Floats) -> Floats:
    """Clip outliers of each column at a distance from its median."""
    median = _mean_of_lowest(values, share, 0.5)[1]
    with np.errstate(over="ignore"):
        # Distances that overflow count as the largest float.
        distance = np.minimum(np.abs(values - median), np.finfo(np.float64).max)
        most = LARGEST_DISTANCE * _mean_of_lowest(distance, share, NEAREST_SHARE)[0]
        # If nearly all values are equal, as for a rare category, the others are not outliers.
        most = np.where(most > 0, most, np.inf)
        cut: Floats = np.clip(values, median - most, median + most)
    return cut


def _mean_of_lowest(values: Floats, share: Floats, part: float) -> tuple[Floats, Floats]:
    """Return the mean of the lowest ``part`` of each column, and the highest of these values.

    ``share`` is the weight of each row as a share of the total weight.
    """
    order = np.argsort(values, axis=0, kind="stable")
    ordered = np.take_along_axis(values, order, axis=0)
    before = np.cumsum(share[order], axis=0) - share[order]
    counted = np.clip(part - before, 0.0, share[order])
    last = np.argmax(before + share[order] >= part * (1 - 1e-12), axis=0)
    highest = np.take_along_axis(ordered, last[None], axis=0)[0]
    mean: Floats = np.einsum("nd,nd->d", counted, ordered) / part
    return mean, highest
