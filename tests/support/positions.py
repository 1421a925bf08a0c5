"""A ranking policy that tests can compute by hand, and that a user could write."""

from dataclasses import dataclass

import numpy as np

from submax.research.beyond.rankings import RankingPolicy


@dataclass(frozen=True, eq=False)
class IndependentPositions(RankingPolicy):
    """Draws the item of position k with the probabilities ``table[..., k]``, whatever is above."""

    table: np.ndarray

    def conditional(self, item):
        return np.broadcast_to(self.table, (len(item), *self.table.shape[-2:]))
