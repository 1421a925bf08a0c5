"""Chooses the threshold beyond which an estimator treats a weight as too large."""

from collections.abc import Callable

import numpy as np

from submax.core.arrays import Floats

CANDIDATES = 24
"""Thresholds that are tried: with 24, neighbouring ones differ little in their error."""
LARGEST_TAIL = 0.5
"""A threshold exceeded by more than this share of the weights is not tried."""
LOWEST_THRESHOLD = 2.0
"""Weights average 1, so that a weight up to 2 is not large, and no lower threshold is tried."""


def candidate_thresholds(weight: Floats) -> Floats:
    """Return thresholds to try: quantiles of the weights, denser toward the largest weight.

    The largest weight itself is among them.
    """
    positive = weight[weight > 0]
    if positive.size == 0:
        return np.ones(1)
    tail = np.geomspace(LARGEST_TAIL, min(LARGEST_TAIL, 1 / positive.size), CANDIDATES - 1)
    quantiles: Floats = np.quantile(positive, [*(1 - tail), 1.0])
    return np.unique(np.maximum(quantiles, min(LOWEST_THRESHOLD, quantiles[-1])))


def least_error_threshold(
    thresholds: Floats, terms_and_lost: Callable[[float], tuple[Floats, Floats]]
) -> float:
    """Return the threshold with the least estimated mean squared error, s² / n + b².

    ``terms_and_lost`` returns for a threshold the terms, whose variance is s², and the amount that
    the threshold removed from each term, whose mean estimates the bias b. The variance of this
    mean is subtracted from its square (but not below 0), so that b² is not overestimated.
    """
    errors = []
    for threshold in thresholds:
        terms, lost = terms_and_lost(float(threshold))
        count = len(terms)
        bias = max(0.0, float(lost.mean() ** 2 - lost.var() / count))
        errors.append(terms.var() / count + bias)
    return float(thresholds[int(np.argmin(errors))])
