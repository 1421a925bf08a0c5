"""Rewards that are counted."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from submax.core.arrays import Booleans, Floats
from submax.core.quantile_levels import check_quantiles, quantile_ruler
from submax.core.ruler import Ruler
from submax.core.scale import Scale


@dataclass(frozen=True)
class Counts(Scale):
    """A reward is a whole number, 0 or more, without an upper bound: clicks, units, minutes.

    The levels are those of `Continuous`. Every quantile is a reward that was observed, so it lies
    in the domain already.

    Reference: Xu et al. (2024), section 3.1.1.
    """

    quantiles: tuple[float, float] = (0.1, 0.9)
    asked: int = 2
    knots: int = 5

    def __post_init__(self) -> None:
        check_quantiles(self.quantiles, self.asked, self.knots)

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

    @property
    def bounds(self) -> None:
        """There is no highest count."""
        return

    def contains(self, reward: Floats) -> Booleans:
        """Whole numbers from 0 on."""
        fits: Booleans = np.isfinite(reward) & (reward >= 0) & (reward == np.floor(reward))
        return fits

    def ruler(self, reward: Floats, weight: Floats) -> Ruler:
        """Quantiles."""
        return quantile_ruler(reward, weight, self.quantiles, self.asked, self.knots)

    def asking(self, levels: int) -> Self:
        """So many quantiles."""
        return replace(self, asked=levels)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """The default, and several levels."""
        yield cls()
        yield cls(quantiles=(0.0, 1.0), asked=4, knots=2)
