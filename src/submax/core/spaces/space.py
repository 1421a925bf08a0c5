"""Base class of action spaces."""

import math
from abc import ABC, abstractmethod
from typing import TypeAlias

import numpy as np

from submax.core.arrays import Actions, Integers
from submax.core.errors import InputError

Choices: TypeAlias = tuple[tuple[int, ...], ...]
"""For each slot, the indices of some of its choices, such as those that are eligible."""
LISTING_LIMIT = 2**20
"""Largest number of joint actions that are ever listed: a table of 2²⁰ floats takes 8 MB."""


LARGEST_INDEX = 2**62
"""Largest number of joint actions whose index is certain to fit into an int64."""


class Space(ABC):
    """A set of joint actions. An action has S parts, one for each slot.

    The last axis of an array of actions is S: first the choices, which are integers, then
    ``reals`` real numbers within bounds. If there are no real-valued parts, actions are integer
    arrays, and every joint action has an index from 0 to ``size - 1``. A space with real-valued
    parts raises an ``InputError`` in every method that needs such an index.
    """

    @property
    @abstractmethod
    def slots(self) -> int:
        """Number of parts of an action (S); a plain arm has one."""

    @property
    @abstractmethod
    def choices(self) -> tuple[int, ...]:
        """Number of choices in each slot that is not real-valued."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of joint actions."""

    @abstractmethod
    def index(self, action: Integers) -> Integers:
        """Return the index of each joint action: ``[..., S] -> [...]``."""

    @abstractmethod
    def action(self, index: Integers) -> Integers:
        """Return the joint action with each index: ``[...] -> [..., S]``."""

    @abstractmethod
    def contains(self, action: Actions) -> bool:
        """Return whether all actions of the array belong to the space."""

    @property
    def reals(self) -> int:
        """Number of real-valued parts of an action."""
        return 0

    @property
    def dtype(self) -> type[np.int64] | type[np.float64]:
        """The dtype of arrays of actions."""
        return np.float64 if self.reals else np.int64

    @property
    def log_measure(self) -> float:
        """Logarithm of the number or volume of joint actions: minus the log-density of uniform."""
        return math.log(self.size)

    def uniform(self, shape: tuple[int, ...], rng: np.random.Generator) -> Actions:
        """Draw actions from the uniform distribution: ``[*shape, S]``."""
        if self.size <= LARGEST_INDEX:
            return self.action(rng.integers(self.size, size=shape))
        return rng.integers(self.choices, size=(*shape, self.slots))

    def scaled(self, action: Actions) -> Actions:
        """Return actions with their real-valued parts scaled to the range from 0 to 1."""
        return action

    def unscaled(self, scaled: Actions) -> Actions:
        """Return actions from scaled ones: the inverse of ``scaled``."""
        return scaled

    def listing(self) -> Integers:
        """Return all joint actions in the order of their indices, ``[size, S]``."""
        return self.action(np.arange(self.size, dtype=np.int64))

    def restricted(self, choices: Choices) -> "Space":
        """Return the space that has only these choices in each slot, in this order."""
        raise InputError(f"the choices of {self} cannot be restricted: take Arms or Slots")

    def indices_of(self, choices: Choices) -> Integers:
        """Return the index of every joint action of ``restricted(choices)``, ``[size of that]``."""
        grid = np.meshgrid(*(np.asarray(slot, dtype=np.int64) for slot in choices), indexing="ij")
        return self.index(np.stack(grid, axis=-1)).ravel()

    def kept_choices(self, choices: Choices) -> Integers:
        """Return the places of these choices in a list of the choices of all slots together."""
        first = np.cumsum([0, *self.choices[:-1]])
        kept = [start + np.asarray(slot) for start, slot in zip(first, choices, strict=True)]
        return np.concatenate(kept)

    def check_listable(self, who: str, instead: str = "") -> None:
        """Raise an ``InputError`` if the joint actions of this space cannot be listed.

        The message names ``who`` needs the list, and ends with the advice ``instead``.
        """
        advice = f": {instead}" if instead else ""
        if self.reals:
            raise InputError(
                f"{who} keeps a number for every joint action, and those of {self} cannot be listed"
                f"{advice}"
            )
        if self.size > LISTING_LIMIT:
            raise InputError(
                f"{who} keeps a number for every joint action, at most {LISTING_LIMIT}, "
                f"and this space has {self.size}{advice}"
            )
