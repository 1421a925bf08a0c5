"""Base class of reward scales whose levels are quantiles of the observed rewards."""

from dataclasses import replace
from typing import Any, Self, cast

from submax.core.arrays import Floats
from submax.core.rewards.quantile_levels import quantile_encoding
from submax.core.rewards.reward_encoding import RewardEncoding
from submax.core.rewards.scale import Scale


class QuantileScale(Scale):
    """Levels at quantiles of the observed rewards.

    ``quantiles`` are the probabilities q₀ and q₁ of the lowest and the highest level. ``asked`` is
    the number of levels; their probabilities are evenly spaced from q₀ to q₁. ``bin_edges`` is the
    number of quantiles of the distinct rewards that are used to encode a reward for a network, by
    linear interpolation between the two nearest bin edges.
    """

    quantiles: tuple[float, float]
    asked: int
    bin_edges: int

    @property
    def levels(self) -> int:
        return self.asked

    @property
    def width(self) -> int:
        return self.bin_edges

    @property
    def moves(self) -> bool:
        return True

    def reward_encoding(self, reward: Floats, weight: Floats) -> RewardEncoding:
        return quantile_encoding(reward, weight, self.quantiles, self.asked, self.bin_edges)

    def with_levels(self, levels: int) -> Self:
        return cast(Self, replace(cast(Any, self), asked=levels))
