"""Contract of a reward scale."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Self

import numpy as np

from submax.core.arrays import Booleans, Floats
from submax.core.errors import InputError
from submax.core.rewards.ruler import Ruler


class Scale(ABC):
    """What a reward can be, and which rewards a policy is conditioned on: the levels."""

    @property
    @abstractmethod
    def levels(self) -> int:
        """How many rewards are conditioned on (L)."""

    @property
    @abstractmethod
    def width(self) -> int:
        """By how many numbers a network is told a reward (E)."""

    @property
    @abstractmethod
    def moves(self) -> bool:
        """Whether the levels depend on the rewards observed."""

    @property
    @abstractmethod
    def bounds(self) -> tuple[float, float] | None:
        """The lowest and the highest reward; None where one of them is not known."""

    @abstractmethod
    def contains(self, reward: Floats) -> Booleans:
        """Which rewards can occur, one answer for each."""

    @abstractmethod
    def ruler(self, reward: Floats, weight: Floats) -> Ruler:
        """The levels, given what was observed: ``[R, N]`` twice; weight 0 is no observation."""

    @abstractmethod
    def asking(self, levels: int) -> "Scale":
        """The same with so many levels, or as many as there are rewards where these are fewer."""

    def check(self, reward: Floats) -> None:
        """Refuse a reward that cannot occur."""
        fits = self.contains(reward)
        if not fits.all():
            stranger = np.asarray(reward)[~fits].flat[0]
            raise InputError(f"a reward of {self} cannot be {stranger:.12g}")

    def known_bounds(self, who: str) -> tuple[float, float]:
        """The bounds, for someone who cannot do without."""
        if self.bounds is None:
            raise InputError(
                f"{who} needs to know the lowest and the highest reward, and {self} does not say"
            )
        return self.bounds

    @classmethod
    @abstractmethod
    def examples(cls) -> Iterator[Self]:
        """Instances that the conformance suite runs."""
