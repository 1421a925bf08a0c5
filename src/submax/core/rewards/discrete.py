"""Rewards with a finite list of values."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from submax.core.arrays import Booleans, Floats
from submax.core.checks import finite, whole_number
from submax.core.errors import InputError
from submax.core.rewards.reward_encoding import RewardEncoding
from submax.core.rewards.scale import Scale
from submax.core.running.stored import stored


@stored("discrete")
@dataclass(frozen=True)
class Discrete(Scale):
    """A reward is one of ``values``, sorted from the lowest to the highest.

    By default every value is a level. ``asked`` limits the number of levels: they are then spread
    evenly over the list, from the first to the last value, and every other value counts as its
    nearest level. Strategies with two levels use the lowest and the highest level.

    >>> nothing = np.zeros((1, 0))
    >>> Discrete((1.0, 2.0, 3.0, 4.0, 5.0), asked=3).reward_encoding(nothing, nothing).levels
    array([[1., 3., 5.]])

    Reference: Xu et al. (2024), section 3.1.1.
    """

    values: tuple[float, ...]
    asked: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.values, tuple) or len(self.values) < 2:
            raise InputError(
                f"values must be a tuple of two rewards or more, not {self.values!r}",
                parameter="values",
            )
        for value in self.values:
            finite("each of values", value)
        if np.any(np.diff(self.values) <= 0):
            raise InputError(
                f"values must rise from lowest to highest, not {self.values}", parameter="values"
            )
        if self.asked is not None:
            whole_number("asked", self.asked, at_least=2, at_most=len(self.values))

    @property
    def levels(self) -> int:
        return self.asked or len(self.values)

    @property
    def width(self) -> int:
        return self.levels

    @property
    def moves(self) -> bool:
        return False

    @property
    def bounds(self) -> tuple[float, float]:
        return self.values[0], self.values[-1]

    def contains(self, reward: Floats) -> Booleans:
        return np.isin(reward, self.values)

    def reward_encoding(self, reward: Floats, weight: Floats) -> RewardEncoding:
        places = np.linspace(0, len(self.values) - 1, self.levels).round().astype(int)
        return RewardEncoding.fixed(tuple(self.values[place] for place in places), len(reward))

    def with_levels(self, levels: int) -> Self:
        return replace(self, asked=min(levels, len(self.values)))
