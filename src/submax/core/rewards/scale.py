"""Base class of reward scales."""

from abc import ABC, abstractmethod

import numpy as np

from submax.core.arrays import Booleans, Floats
from submax.core.errors import InputError
from submax.core.rewards.reward_encoding import RewardEncoding


class Scale(ABC):
    """The set of possible rewards, and the levels: the rewards that a policy is conditioned on."""

    @property
    @abstractmethod
    def levels(self) -> int:
        """Number of levels (L)."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of bin edges, the length of a reward's encoding for networks (E)."""

    @property
    @abstractmethod
    def moves(self) -> bool:
        """Whether the levels depend on the observed rewards, and so change with new data."""

    @property
    @abstractmethod
    def bounds(self) -> tuple[float, float] | None:
        """The lowest and the highest possible reward; None if one of them is unknown."""

    @abstractmethod
    def contains(self, reward: Floats) -> Booleans:
        """Return for each reward whether it is possible."""

    @abstractmethod
    def reward_encoding(self, reward: Floats, weight: Floats) -> RewardEncoding:
        """Return levels and bin edges for observed rewards and their weights, both ``[R, N]``.

        A reward with weight 0 was not observed.
        """

    @abstractmethod
    def with_levels(self, levels: int) -> "Scale":
        """Return this scale with ``levels`` levels, or fewer if there are fewer rewards."""

    def check(self, reward: Floats) -> None:
        """Raise an ``InputError`` if a reward is not possible."""
        fits = self.contains(reward)
        if not fits.all():
            impossible = np.asarray(reward)[~fits].flat[0]
            raise InputError(f"a reward of {self} cannot be {impossible:.12g}", parameter="reward")

    def known_bounds(self, who: str) -> tuple[float, float]:
        """Return the bounds; raise an ``InputError`` that names ``who`` needs them if unknown."""
        if self.bounds is None:
            raise InputError(
                f"{who} needs to know the lowest and the highest reward, and {self} does not say: "
                "use a scale with both, such as Continuous(low=0.0, high=1.0)"
            )
        return self.bounds
