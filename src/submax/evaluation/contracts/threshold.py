"""Chooses the threshold beyond which an estimator treats a weight as too large."""

from collections.abc import Callable

import numpy as np

from submax.core.arrays import Floats
from submax.evaluation.contracts.counts import error_of_mean, mean, quantiles, some, total, variance

CANDIDATES = 24
"""Thresholds that are tried: with 24, neighbouring ones differ little in their error."""
LARGEST_TAIL = 0.5
"""A threshold exceeded by more than this share of the weights is not tried."""
LOWEST_THRESHOLD = 2.0
"""Weights average 1, so that a weight up to 2 is not large, and no lower threshold is tried."""

AGREEMENT_ERRORS = 1.96
"""Half-width, in standard errors, of the intervals that SLOPE compares."""
SLOPE_CONSTANT = float(np.sqrt(6)) - 1
"""Factor of the wider interval in SLOPE, from its analysis."""


def candidate_thresholds(weight: Floats, count: Floats | None = None) -> Floats:
    """Return thresholds to try: quantiles of the weights, denser toward the largest weight.

    The largest weight itself is among them.
    """
    positive = weight[weight > 0]
    if positive.size == 0:
        return np.ones(1)
    counted = some(count, weight > 0)
    rarest = 1 / total(positive, counted)
    tail = np.geomspace(LARGEST_TAIL, min(LARGEST_TAIL, rarest), CANDIDATES - 1)
    tried = quantiles(positive, np.append(1 - tail, 1.0), counted)
    return np.unique(np.maximum(tried, min(LOWEST_THRESHOLD, tried[-1])))


def least_error_threshold(
    thresholds: Floats,
    terms_and_lost: Callable[[float], tuple[Floats, Floats]],
    count: Floats | None = None,
) -> float:
    """Return the threshold with the least estimated mean squared error, s² / n + b².

    ``terms_and_lost`` returns for a threshold the terms, whose variance is s², and the amount that
    the threshold removed from each term, whose mean estimates the bias b. The variance of this
    mean is subtracted from its square (but not below 0), so that b² is not overestimated.
    ``count`` is the number of decisions of each term.
    """
    errors = []
    for threshold in thresholds:
        terms, lost = terms_and_lost(float(threshold))
        rows = total(terms, count)
        bias = max(0.0, mean(lost, count) ** 2 - variance(lost, count) / rows)
        errors.append(variance(terms, count) / rows + bias)
    return float(thresholds[int(np.argmin(errors))])


def slope_threshold(
    thresholds: Floats,
    terms_and_lost: Callable[[float], tuple[Floats, Floats]],
    count: Floats | None = None,
) -> float:
    """Return the smallest threshold whose estimate agrees with those of all larger thresholds.

    The smaller the threshold, the smaller the variance and the larger the bias. Going from the
    largest threshold j to smaller ones k, estimate k agrees with j if |V_j − V_k| is at most
    c_k + (√6 − 1) c_j, where c is the half-width of the 95 % interval. The bias itself is never
    estimated, so that the choice is stable if few rows have large weights.

    Reference: Su, Srinath and Krishnamurthy (2020), Adaptive estimator selection for off-policy
    evaluation; the constant is that of Tucker and Lee (2021).
    """
    values: list[float] = []
    halves: list[float] = []
    chosen = float(thresholds.max())
    for threshold in np.sort(thresholds)[::-1]:
        terms, _ = terms_and_lost(float(threshold))
        value = mean(terms, count)
        half = AGREEMENT_ERRORS * error_of_mean(terms, count)
        differences = np.abs(np.array(values) - value)
        if np.any(differences > half + SLOPE_CONSTANT * np.array(halves)):
            break
        chosen = float(threshold)
        values.append(value)
        halves.append(half)
    return chosen


TUNINGS = {"error": least_error_threshold, "slope": slope_threshold}
"""How a threshold is chosen: by the least estimated error, or by SLOPE."""
