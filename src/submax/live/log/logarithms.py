"""Logarithms that are the same on every processor."""

import math

import numpy as np

from submax.core.arrays import Floats

LOOKED_AT = 64
"""How many numbers say whether numbers repeat."""


def logarithms(numbers: Floats) -> Floats:
    """Return the logarithms of numbers above 0.

    Numpy's logarithm may differ between processors in the last bit, so that Python's is used. If
    numbers repeat, as propensities of a few choices do, that of each is computed once.

    >>> logarithms(np.array([1.0, 1.0])).tolist()
    [0.0, 0.0]
    """
    if len(np.unique(numbers[:LOOKED_AT])) > LOOKED_AT / 2:
        return np.array([*map(math.log, numbers.tolist())])
    different, place = np.unique(numbers, return_inverse=True)
    return np.array([*map(math.log, different.tolist())])[place]
