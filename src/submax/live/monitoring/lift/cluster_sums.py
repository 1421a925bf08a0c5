"""Sums by clusters of units, from which the noise of a mean of dependent numbers follows."""

import hashlib
from collections.abc import Sequence
from functools import lru_cache

import msgspec
import numpy as np

from submax.core.arrays import Floats

CLUSTERS = 1024
"""Clusters into which units are divided by a hash. The relative standard error of the variance is
about √(2 / 1024) = 4 %, and the sums take 16 kB."""


class ClusterSums(msgspec.Struct, frozen=True):
    """The sum and the number of the values of each cluster; empty before the first unit.

    Values of different units are independent, and those of one unit are in one cluster. The squares
    of clusters' sums of deviations from the mean then have the expected value of the variance of
    the total, however units are divided into clusters. ``squares`` and ``count`` are of values
    without a unit, of which each is a cluster of its own.
    """

    sums: list[float] = []
    counts: list[int] = []
    total: float = 0.0
    squares: float = 0.0
    count: int = 0

    def add(self, values: Floats, units: Sequence[str | None]) -> "ClusterSums":
        """Return the sums with further values."""
        alone = np.array([unit is None for unit in units])
        # Sums in sequence do not depend on how the values are divided between calls.
        total, squares = self.total, self.squares
        for value in values[alone].tolist():
            total, squares = total + value, squares + value * value
        sums, counts = self.sums, self.counts
        if not alone.all():
            sums = list(sums) or [0.0] * CLUSTERS
            counts = list(counts) or [0] * CLUSTERS
            for value, unit in zip(values.tolist(), units, strict=True):
                if unit is not None:
                    place = cluster_of(unit)
                    sums[place] += value
                    counts[place] += 1
        return ClusterSums(sums, counts, total, squares, self.count + int(alone.sum()))

    def variance(self, mean: float) -> float:
        """Return the estimated variance of the sum of all values, whose mean is ``mean``."""
        alone = self.squares - 2 * mean * self.total + self.count * mean**2
        deviations = np.array(self.sums) - mean * np.array(self.counts)
        return float(max(alone, 0.0) + (deviations**2).sum())


@lru_cache(4096)
def cluster_of(unit: str) -> int:
    """Return the number of the cluster of a unit."""
    return int.from_bytes(hashlib.blake2b(unit.encode(), digest_size=8).digest()) % CLUSTERS
