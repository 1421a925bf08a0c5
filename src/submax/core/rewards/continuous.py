"""Real-valued rewards."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Booleans, Floats
from submax.core.checks import finite
from submax.core.errors import InputError
from submax.core.rewards.quantile_levels import check_quantiles
from submax.core.rewards.quantile_scale import QuantileScale
from submax.core.running.stored import stored


@stored("continuous")
@dataclass(frozen=True)
class Continuous(QuantileScale):
    """A reward is a number, between ``low`` and ``high`` if they are given.

    The levels are quantiles of the observed rewards and move as data arrive; `QuantileScale`
    explains ``quantiles``, ``asked`` and ``bin_edges``.

    Reference: Xu et al. (2024), section 3.1.1; Kumar et al. (2019).
    """

    low: float | None = None
    high: float | None = None
    quantiles: tuple[float, float] = (0.1, 0.9)
    asked: int = 2
    bin_edges: int = 5

    def __post_init__(self) -> None:
        for name, bound in (("low", self.low), ("high", self.high)):
            if bound is not None:
                finite(f"{name}, if it is given,", bound)
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise InputError(
                f"low must be below high, not {self.low} and {self.high}", parameter="low"
            )
        check_quantiles(self.quantiles, self.asked, self.bin_edges)

    @property
    def bounds(self) -> tuple[float, float] | None:
        return None if self.low is None or self.high is None else (self.low, self.high)

    def contains(self, reward: Floats) -> Booleans:
        fits = np.isfinite(reward)
        if self.low is not None:
            fits &= reward >= self.low
        if self.high is not None:
            fits &= reward <= self.high
        return fits
