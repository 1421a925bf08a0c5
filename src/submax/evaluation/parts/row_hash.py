"""Pseudo-random numbers of rows, which do not depend on how a log is divided into parts."""

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers

STEP = np.uint64(0x9E3779B97F4A7C15)
MIXERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))
"""Constants of the generator SplitMix64 (Steele, Lea and Flood, 2014)."""


def uniform_of(number: Integers, seed: int) -> Floats:
    """Return a pseudo-random number from 0 to 1 for the number of each row.

    >>> bool(uniform_of(np.arange(10), 0)[3] == uniform_of(np.array([3]), 0)[0])
    True
    """
    with np.errstate(over="ignore"):
        mixed: NDArray[np.uint64] = number.astype(np.uint64) + np.uint64(seed + 1) * STEP
        mixed = (mixed ^ (mixed >> np.uint64(30))) * MIXERS[0]
        mixed = (mixed ^ (mixed >> np.uint64(27))) * MIXERS[1]
        mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53
