"""The greedy choice among scores."""

from submax.core.arrays import Floats


def highest(score: Floats) -> Floats:
    """Equal probabilities for the highest scores along the last axis, 0 for all others.

    >>> import numpy as np
    >>> highest(np.array([1.0, 3.0, 3.0])).tolist()
    [0.0, 0.5, 0.5]
    """
    best = score == score.max(axis=-1, keepdims=True)
    shared: Floats = best / best.sum(axis=-1, keepdims=True)
    return shared
