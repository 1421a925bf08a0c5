"""What the arms will have been pulled and won before each of some decisions to come."""

from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Booleans, Floats, Integers


class ForeseenCounts(NamedTuple):
    """``wins`` and ``pulls`` of every arm before each of n decisions, ``[n, W, A]``."""

    wins: Floats
    pulls: Floats

    @classmethod
    def of(cls, wins: Floats, pulls: Floats, index: Integers, won: Booleans) -> Self:
        """Counts if the present ones are ``[W, A]`` and the decisions ``index``, ``won [n, W]``."""
        decisions, numbers = len(index), wins.size
        counts = np.zeros((2, decisions, *wins.shape))
        counts[:, 0] = wins, pulls
        place = np.arange(0, decisions * numbers, wins.shape[1]).reshape(index.shape) + index
        # A decision counts from the next one on.
        later, flat = place[:-1] + numbers, counts.reshape(2, -1)
        flat[0, later] += won[:-1]
        flat[1, later] += 1.0
        return cls(*np.cumsum(counts, axis=1, out=counts))

    def lower_is_frequent(self) -> Booleans:
        """Whether arms that were pulled failed more often than they won, on average, ``[n, W]``."""
        upper = np.add.reduce(self.wins / np.maximum(self.pulls, 1.0), axis=-1)
        tried = np.add.reduce(self.pulls > 0.0, axis=-1)
        frequent: Booleans = upper <= tried - upper
        return frequent
