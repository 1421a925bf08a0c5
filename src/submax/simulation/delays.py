"""Delays: when rewards come back in a simulation."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Annotated, NamedTuple

import numpy as np

from submax.core.arrays import Integers
from submax.core.checks import Allowed, Checked, Count, NonNegative, Probability, whole_number


class Step(NamedTuple):
    """Take ``decide`` decisions together, then receive the ``receive`` oldest pending rewards."""

    decide: int
    receive: int


class Delay(Checked, ABC):
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


@dataclass(frozen=True)
class BatchedRewards(Delay):
    """Rewards come back together after every ``size`` decisions (N_b in the paper).

    >>> list(BatchedRewards(2).schedule(5))
    [Step(decide=2, receive=2), Step(decide=2, receive=2), Step(decide=1, receive=0)]

    Reference: the delay buffer of Xu et al. (2024), section 4.1.
    """

    size: Count = 1

    def schedule(self, observations: int) -> Iterator[Step]:
        """Full batches, then the remaining decisions, whose rewards never come back."""
        yield from repeat(Step(self.size, self.size), observations // self.size)
        if rest := observations % self.size:
            yield Step(rest, 0)

    @property
    def length(self) -> int:
        return self.size


@dataclass(frozen=True)
class Lag(Delay):
    """Every reward comes back after ``steps`` further decisions have been taken.

    >>> list(Lag(2).schedule(5))
    [Step(decide=3, receive=1), Step(decide=1, receive=1), Step(decide=1, receive=1)]
    """

    steps: Annotated[int, Allowed(whole_number, at_least=0)] = 0

    def schedule(self, observations: int) -> Iterator[Step]:
        """The first ``steps`` decisions get no reward back; then one comes with each decision."""
        if observations <= self.steps:
            yield Step(observations, 0)
        else:
            yield Step(self.steps + 1, 1)
            yield from repeat(Step(1, 1), observations - self.steps - 1)

    @property
    def length(self) -> int:
        return self.steps


NEVER = np.int64(2**62)
"""The wait of a reward that never comes back."""


class RandomDelay(Delay):
    """Every reward comes back after a random number of further decisions, or never.

    Decisions are taken one by one. Rewards can overtake each other, and every replica has delays of
    its own.
    """

    def schedule(self, observations: int) -> Iterator[Step]:
        """Single decisions; which rewards come back is drawn, see ``waits``."""
        yield from repeat(Step(1, 0), observations)

    @abstractmethod
    def waits(self, replicas: int, rng: np.random.Generator) -> Integers:
        """Draw after how many further decisions each reward comes back; `NEVER` if it does not."""


@dataclass(frozen=True)
class Geometric(RandomDelay):
    """A pending reward comes back after each further decision with the same probability.

    P(delay = d) = p (1 − p)^d with p = 1 / (1 + m): the delay has no memory and the mean m, which
    is ``mean``. With probability ``missing`` the reward never comes back.
    """

    mean: NonNegative = 10.0
    missing: Probability = 0.0

    @property
    def length(self) -> int:
        return round(self.mean)

    def waits(self, replicas: int, rng: np.random.Generator) -> Integers:
        drawn = rng.geometric(np.full(replicas, 1 / (1 + self.mean))) - 1
        return np.where(rng.random(replicas) < self.missing, NEVER, drawn)
