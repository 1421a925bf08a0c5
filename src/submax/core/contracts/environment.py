"""Contract of an environment."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Generic, NamedTuple, Self, TypeVar

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.contracts.problem import Problem

World = TypeVar("World")


class Outcome(NamedTuple):
    """Rewards as they were drawn, and as they are expected, both ``[R, n]``."""

    reward: Floats
    mean: Floats


class Environment(ABC, Generic[World]):
    """A distribution over worlds; a world is the hidden truth of every replica."""

    @property
    @abstractmethod
    def problem(self) -> Problem:
        """What a policy is told."""

    @abstractmethod
    def reset(self, replicas: int, rng: np.random.Generator) -> World:
        """Draw the hidden truth of each replica."""

    @abstractmethod
    def contexts(self, world: World, count: int, rng: np.random.Generator) -> Floats:
        """Draw ``count`` contexts for each replica: ``[R, count, D]``."""

    @abstractmethod
    def mean_reward(self, world: World, context: Floats, action: Actions) -> Floats:
        """Expected reward of ``action [R, n, S]``: ``[R, n]``."""

    @abstractmethod
    def reward(
        self, world: World, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Floats:
        """Draw the reward of ``action [R, n, S]``: ``[R, n]``."""

    def outcome(
        self, world: World, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Outcome:
        """The drawn reward and its expectation; where one costs the other, do both at once."""
        reward = self.reward(world, context, action, rng)
        return Outcome(reward, self.mean_reward(world, context, action))

    @abstractmethod
    def best_reward(self, world: World, context: Floats) -> Floats:
        """Expected reward of the best action in each context: ``[R, n]``."""

    @property
    def most_decisions(self) -> int | None:
        """How many decisions a replica can take, such as one for each row of a table; None: any."""
        return None

    @property
    def shared(self) -> bool:
        """Whether all replicas meet one truth, and no contexts that tell them apart."""
        return False

    def advance(self, world: World, count: int, rng: np.random.Generator) -> World:
        """The truth after ``count`` more decisions; it stays as it is unless this is overridden."""
        return world

    @classmethod
    @abstractmethod
    def examples(cls) -> Iterator[Self]:
        """Instances that the conformance suite runs."""
