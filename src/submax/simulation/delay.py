"""The contract of a delay: when rewards come back in a simulation."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import NamedTuple


class Step(NamedTuple):
    """Take ``decide`` decisions together, then receive the ``receive`` oldest pending rewards."""

    decide: int
    receive: int


class Delay(ABC):
    """A schedule of when rewards come back to the policy, the oldest first.

    Only a ``RandomDelay`` lets rewards overtake each other: its schedule has only decisions, and
    the wait of every reward is drawn.
    """

    @abstractmethod
    def schedule(self, observations: int) -> Iterator[Step]:
        """Yield steps whose decisions add up to ``observations``."""

    @property
    @abstractmethod
    def length(self) -> int:
        """The delay as one number of decisions, the label ``delay`` in tables and figures."""

    @property
    def immediate(self) -> bool:
        """Whether every decision is taken alone and its reward comes back before the next one."""
        return False

    @property
    def one_by_one(self) -> bool:
        """Whether, once rewards come back, exactly one decision is taken between two of them."""
        return self.immediate
