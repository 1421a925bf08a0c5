"""What scales with levels at quantiles have in common."""

from dataclasses import replace
from typing import Any, Self, cast

from submax.core.arrays import Floats
from submax.core.rewards.quantile_levels import quantile_ruler
from submax.core.rewards.ruler import Ruler
from submax.core.rewards.scale import Scale


class QuantileScale(Scale):
    """Levels at the shares q₀ and q₁ of what was observed, and evenly between them.

    ``quantiles`` are q₀ and q₁, ``asked`` is the number of levels, ``knots`` that of the quantiles
    of the different rewards by whose place between them a network is told a reward.
    """

    quantiles: tuple[float, float]
    asked: int
    knots: int

    @property
    def levels(self) -> int:
        """As many as asked for."""
        return self.asked

    @property
    def width(self) -> int:
        """The number of knots."""
        return self.knots

    @property
    def moves(self) -> bool:
        """With every reward."""
        return True

    def ruler(self, reward: Floats, weight: Floats) -> Ruler:
        """Quantiles."""
        return quantile_ruler(reward, weight, self.quantiles, self.asked, self.knots)

    def asking(self, levels: int) -> Self:
        """So many quantiles."""
        return cast(Self, replace(cast(Any, self), asked=levels))
