"""A threshold of weights, chosen from the data."""

from collections.abc import Callable

import numpy as np

from submax.core.arrays import Floats

CANDIDATES = 24
LEAST_TAIL = 0.5
"""A threshold that more than this share of the weights exceed is not tried."""
ORDINARY = 2.0
"""Weights average 1, and those up to this are not large."""


def candidates(weight: Floats) -> Floats:
    """Quantiles of the large weights, closer together toward the largest, which is one too."""
    positive = weight[weight > 0]
    if positive.size == 0:
        return np.ones(1)
    tail = np.geomspace(LEAST_TAIL, min(LEAST_TAIL, 1 / positive.size), CANDIDATES - 1)
    found: Floats = np.quantile(positive, [*(1 - tail), 1.0])
    return np.unique(np.maximum(found, min(ORDINARY, found[-1])))


def least_error(thresholds: Floats, parts: Callable[[float], tuple[Floats, Floats]]) -> float:
    """The threshold with the least estimated mean squared error, s² / n + b².

    ``parts`` gives for a threshold the terms, whose variance is s², and what each row's term lost
    by it, whose mean estimates the bias b; of the square of that mean its own variance is taken
    off, down to 0, so that b² is not overestimated.
    """
    errors = []
    for threshold in thresholds:
        terms, lost = parts(float(threshold))
        count = len(terms)
        bias = max(0.0, float(lost.mean() ** 2 - lost.var() / count))
        errors.append(terms.var() / count + bias)
    return float(thresholds[int(np.argmin(errors))])
