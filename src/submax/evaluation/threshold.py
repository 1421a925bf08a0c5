"""A threshold of weights, chosen from the data."""

from collections.abc import Callable

import numpy as np

from submax.core.arrays import Floats

CANDIDATES = 24
HIGHEST = 0.5
"""Thresholds below this quantile of the weights are not tried."""


def candidates(weight: Floats) -> Floats:
    """Quantiles of the positive weights, closer together toward the largest, which is one too."""
    positive = weight[weight > 0]
    if positive.size == 0:
        return np.ones(1)
    tail = np.geomspace(HIGHEST, min(HIGHEST, 1 / positive.size), CANDIDATES - 1)
    found: Floats = np.quantile(positive, [*(1 - tail), 1.0])
    return np.unique(found)


def least_error(thresholds: Floats, parts: Callable[[float], tuple[Floats, Floats]]) -> float:
    """The threshold with the least estimated mean squared error, s² / n + b².

    ``parts`` gives for a threshold the terms, whose variance is s², and what each row's term lost
    by it; b is the mean loss and two of its standard errors. The bias so counts at its worst, and
    without a threshold there is none.
    """
    errors = []
    for threshold in thresholds:
        terms, lost = parts(float(threshold))
        count = len(terms)
        bias = abs(lost.mean()) + 2 * lost.std() / np.sqrt(count)
        errors.append(terms.var() / count + bias**2)
    return float(thresholds[int(np.argmin(errors))])
