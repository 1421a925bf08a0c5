"""Rewards that are counts."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Booleans, Floats
from submax.core.rewards.quantile_levels import check_quantiles
from submax.core.rewards.quantile_scale import QuantileScale
from submax.core.running.stored import stored


@stored("counts")
@dataclass(frozen=True)
class Counts(QuantileScale):
    """A reward is a whole number, 0 or more, without an upper bound: clicks, units, minutes.

    The levels are quantiles of the observed counts, as in `Continuous`; every level is therefore a
    count, too.

    Reference: Xu et al. (2024), section 3.1.1.
    """

    quantiles: tuple[float, float] = (0.1, 0.9)
    asked: int = 2
    bin_edges: int = 5

    def __post_init__(self) -> None:
        check_quantiles(self.quantiles, self.asked, self.bin_edges)

    @property
    def bounds(self) -> None:
        return None

    def contains(self, reward: Floats) -> Booleans:
        fits: Booleans = np.isfinite(reward) & (reward >= 0) & (reward == np.floor(reward))
        return fits
