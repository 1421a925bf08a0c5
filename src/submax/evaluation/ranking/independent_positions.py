"""A ranking policy that draws the item of each position by itself."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.errors import InputError
from submax.evaluation.ranking.ranking_policy import RankingPolicy

SUM_TOLERANCE = 1e-6
"""Difference from 1 up to which probabilities are taken to add up to 1."""


@dataclass(frozen=True, eq=False)
class IndependentPositions(RankingPolicy):
    """Draws the item of position k with the probabilities ``table[k]``, whatever is above it.

    ``table`` is ``[K, M]``, or ``[n, K, M]`` with a table for each slate.
    """

    table: Floats

    def __post_init__(self) -> None:
        table = np.asarray(self.table, dtype=np.float64)
        sums = table.sum(axis=-1)
        if table.ndim not in (2, 3) or (table < 0).any() or np.abs(sums - 1).max() > SUM_TOLERANCE:
            raise InputError(
                f"the table has the shape {table.shape} and sums from {sums.min():.3g} to "
                f"{sums.max():.3g}; probabilities [positions, items] that add up to 1 at each "
                "position are allowed: normalize them",
                parameter="table",
            )
        object.__setattr__(self, "table", table if table.ndim == 3 else table[None])

    def conditional(self, item: Integers) -> Floats:
        return np.broadcast_to(self.table, (len(item), *self.table.shape[1:]))

    def marginal(self, slates: int, positions: int) -> Floats | None:
        return self.table
