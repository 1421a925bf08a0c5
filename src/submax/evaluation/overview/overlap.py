"""How the weights of a policy are distributed over the rows of a log."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats

EDGES = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""Ends of the intervals of weights, each twice the one before. Weights average 1; the last interval
has no end."""


class Overlap(NamedTuple):
    """``rows`` and the sum of weights, ``weight``, in each interval of weights.

    The first interval is the weight 0; the next one is from above 0 to ``EDGES[1]``, and so on; the
    last one is above ``EDGES[-1]``. A policy that resembles the log has weights near 1. If few rows
    have most of the sum, the estimates rely on these rows.
    """

    rows: list[int]
    weight: list[float]

    @classmethod
    def of(cls, weight: Floats, count: Floats | None = None) -> "Overlap":
        """Return the distribution of the weights of all rows, each of ``count`` decisions.

        >>> Overlap.of(np.array([0.0, 1.0, 1.0, 100.0])).rows
        [1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 1]
        """
        place = np.searchsorted(EDGES, weight, side="left")
        places = len(EDGES) + 1
        rows = np.bincount(place, count, minlength=places).astype(np.int64)
        counted = weight if count is None else count * weight
        return cls(rows.tolist(), np.bincount(place, counted, minlength=places).tolist())

    def joined(self, other: "Overlap") -> "Overlap":
        """Return the distribution over the rows of both."""
        rows = [one + more for one, more in zip(self.rows, other.rows, strict=True)]
        weight = [one + more for one, more in zip(self.weight, other.weight, strict=True)]
        return Overlap(rows, weight)

    @staticmethod
    def labels() -> list[str]:
        """Return the names of the intervals."""
        between = [f"{low:g} to {high:g}" for low, high in pairwise(EDGES)]
        return ["0", *between, f"above {EDGES[-1]:g}"]
