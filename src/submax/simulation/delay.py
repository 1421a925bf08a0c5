"""Contract of a delay."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import NamedTuple, Self


class Step(NamedTuple):
    """Take this many decisions together, then get back this many of the oldest rewards."""

    decide: int
    receive: int


class Delay(ABC):
    """When rewards come back; oldest first."""

    @abstractmethod
    def schedule(self, observations: int) -> Iterator[Step]:
        """Steps whose decisions add up to ``observations``."""

    @property
    @abstractmethod
    def length(self) -> int:
        """The delay as one number, for tables and figures."""

    @classmethod
    @abstractmethod
    def examples(cls) -> Iterator[Self]:
        """Instances that the conformance suite runs."""
