"""Rewards that are there or not."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from submax.core.arrays import Booleans, Floats
from submax.core.rewards.ruler import Ruler
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
        """Two."""
        return 2

    @property
    def width(self) -> int:
        """One-hot."""
        return 2

    @property
    def moves(self) -> bool:
        """Never."""
        return False

    @property
    def bounds(self) -> tuple[float, float]:
        """0 and 1."""
        return 0.0, 1.0

    def contains(self, reward: Floats) -> Booleans:
        """0 and 1 alone."""
        fits: Booleans = (reward == 0) | (reward == 1)
        return fits

    def ruler(self, reward: Floats, weight: Floats) -> Ruler:
        """0 and 1, whatever is observed."""
        return Ruler.fixed((0.0, 1.0), len(reward))

    def asking(self, levels: int) -> Self:
        """There are two."""
        return self

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """It has no parameters."""
        yield cls()
