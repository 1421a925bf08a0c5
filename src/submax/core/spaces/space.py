"""Contract of an action space."""

import math
from abc import ABC, abstractmethod

import numpy as np

from submax.core.arrays import Actions, Integers
from submax.core.errors import InputError

LISTING_LIMIT = 2**20
"""The largest number of joint actions that is ever written out one by one."""


LARGEST_INDEX = 2**62
"""Beyond this an index is no whole number of a machine."""


class Space(ABC):
    """A set of joint actions; an action is a row of choices, one for each slot.

    Actions are arrays that end in the slot axis S: first the choices, whole numbers, then
    ``reals`` numbers within bounds. Where there are none of these, actions are integers, and every
    joint action also has one number, its index, from 0 to ``size - 1``; a space with real-valued
    parts refuses what needs a list of its actions.
    """

    @property
    @abstractmethod
    def slots(self) -> int:
        """How many choices make one action (S); a plain arm has one."""

    @property
    @abstractmethod
    def choices(self) -> tuple[int, ...]:
        """The number of choices in each slot that is not real-valued."""

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
    def contains(self, action: Actions) -> bool:
        """Whether every action of the array belongs to the space."""

    @property
    def reals(self) -> int:
        """How many parts of an action are real-valued."""
        return 0

    @property
    def dtype(self) -> type[np.int64] | type[np.float64]:
        """The type of actions."""
        return np.float64 if self.reals else np.int64

    @property
    def log_measure(self) -> float:
        """Logarithm of the number of joint actions, or of their volume: −log of the uniform."""
        return math.log(self.size)

    def uniform(self, shape: tuple[int, ...], rng: np.random.Generator) -> Actions:
        """Draw actions of which each is as likely as any other: ``[*shape, S]``."""
        if self.size <= LARGEST_INDEX:
            return self.action(rng.integers(self.size, size=shape))
        return rng.integers(self.choices, size=(*shape, self.slots))

    def scaled(self, action: Actions) -> Actions:
        """Actions as networks take them: their real-valued parts from 0 to 1."""
        return action

    def unscaled(self, scaled: Actions) -> Actions:
        """The reverse."""
        return scaled

    def listing(self) -> Integers:
        """All joint actions in the order of their numbers, ``[size, S]``."""
        return self.action(np.arange(self.size, dtype=np.int64))

    def check_listable(self, who: str, instead: str = "") -> None:
        """Refuse a space with more joint actions than can be written out; say what to do instead.

        ``instead`` follows a colon.
        """
        advice = f": {instead}" if instead else ""
        if self.reals:
            raise InputError(
                f"{who} keeps a number for every joint action, and {self} has no list{advice}"
            )
        if self.size > LISTING_LIMIT:
            raise InputError(
                f"{who} keeps a number for every joint action, at most {LISTING_LIMIT}, "
                f"and this space has {self.size}{advice}"
            )
