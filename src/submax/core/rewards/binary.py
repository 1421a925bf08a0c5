"""Rewards that are 0 or 1."""

from dataclasses import dataclass
from typing import Self

from submax.core.arrays import Booleans, Floats
from submax.core.rewards.reward_encoding import RewardEncoding
from submax.core.rewards.scale import Scale
from submax.core.running.stored import stored


@stored("binary")
@dataclass(frozen=True)
class Binary(Scale):
    """A reward is 0 or 1; both are levels.

    Reference: Xu et al. (2024), section 3.1.
    """

    @property
    def levels(self) -> int:
        return 2

    @property
    def width(self) -> int:
        return 2

    @property
    def moves(self) -> bool:
        return False

    @property
    def bounds(self) -> tuple[float, float]:
        return 0.0, 1.0

    def contains(self, reward: Floats) -> Booleans:
        fits: Booleans = (reward == 0) | (reward == 1)
        return fits

    def reward_encoding(self, reward: Floats, weight: Floats) -> RewardEncoding:
        return RewardEncoding.fixed((0.0, 1.0), len(reward))

    def with_levels(self, levels: int) -> Self:
        return self
