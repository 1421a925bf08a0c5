"""Contract of an action space."""

from abc import ABC, abstractmethod

import numpy as np

from submax.core.arrays import Integers
from submax.core.errors import InvalidValue

LISTING_LIMIT = 2**20
"""The largest number of joint actions that is ever written out one by one."""


class Space(ABC):
    """A finite set of joint actions; an action is a row of choices, one for each slot.

    Actions are integer arrays that end in the slot axis S. Every joint action also has one
    number, its index, from 0 to ``size - 1``.
    """

    @property
    @abstractmethod
    def slots(self) -> int:
        """How many choices make one action (S); a plain arm has one."""

    @property
    @abstractmethod
    def choices(self) -> tuple[int, ...]:
        """The number of choices in each slot."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of joint actions."""

    @abstractmethod
    def index(self, action: Integers) -> Integers:
        """The number of each joint action: ``[..., S] -> [...]``."""

    @abstractmethod
    def action(self, index: Integers) -> Integers:
        """The joint action with each number: ``[...] -> [..., S]``."""

    @abstractmethod
    def contains(self, action: Integers) -> bool:
        """Whether every action of the array belongs to the space."""

    def listing(self) -> Integers:
        """All joint actions in the order of their numbers, ``[size, S]``."""
        return self.action(np.arange(self.size, dtype=np.int64))

    def check_listable(self, who: str) -> None:
        """Refuse a space with more joint actions than can be written out."""
        if self.size > LISTING_LIMIT:
            raise InvalidValue(
                f"{who} keeps a number for every joint action, at most {LISTING_LIMIT}, "
                f"and this space has {self.size}"
            )
