"""The boundary of bounded observations as a table, because a search for each look is slow."""

import functools
import math

import numpy as np

from submax.core.arrays import Floats
from submax.sequential.mixture_boundary import log_mixture, mixing_precision

SMALLEST, LARGEST = 2.0**-10, 2.0**40
"""Variances between which there are entries; below the smallest its entry is used."""
ENTRIES_PER_OCTAVE = 64
"""Entries for each doubling of the variance: the boundary is too wide by at most 0.6 %."""
BISECTIONS = 24
"""Halvings of the bracket of an entry. Its upper end is used, too wide by less than 1e-5."""


class BoundaryTable:
    """How far a sum of increments of at most 1 may stray, for each sum of their squares.

    The boundary grows with the variance. So the entry of the next larger variance in the table is
    never too narrow, and no guarantee is lost. Beyond the last entry it is taken to grow in
    proportion to the variance, which is too wide, because the boundary is concave.
    """

    def __init__(self, error: float, tightest_at: float) -> None:
        self._error = error
        self._mixing = mixing_precision(tightest_at, error)
        octaves = math.log2(LARGEST / SMALLEST)
        self._variances = np.geomspace(SMALLEST, LARGEST, round(octaves * ENTRIES_PER_OCTAVE) + 1)
        self._boundaries = self._search(self._variances)

    def __call__(self, variance: Floats) -> Floats:
        """Return the boundary for each variance."""
        place = np.searchsorted(self._variances, variance)
        found: Floats = self._boundaries[np.minimum(place, len(self._variances) - 1)]
        return found * np.maximum(variance / LARGEST, 1.0)

    def _search(self, variance: Floats) -> Floats:
        """Return where the mixture of each variance reaches its limit, by halving a bracket."""
        limit, below = math.log(2 / self._error), np.zeros(len(variance))
        above = np.sqrt(variance + self._mixing) + 1.0
        while (short := log_mixture(above, variance, 1.0, self._mixing) < limit).any():
            above = np.where(short, 2 * above, above)
        for _ in range(BISECTIONS):
            middle = (below + above) / 2
            inside = log_mixture(middle, variance, 1.0, self._mixing) < limit
            below, above = np.where(inside, middle, below), np.where(inside, above, middle)
        return above


@functools.lru_cache(maxsize=16)
def boundary_table(error: float, tightest_at: float) -> BoundaryTable:
    """Return the table for a chance of error, which is made once."""
    return BoundaryTable(error, tightest_at)
