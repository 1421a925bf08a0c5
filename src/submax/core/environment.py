"""Base class of environments."""

from abc import ABC, abstractmethod
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.checks import Checked
from submax.core.problem import Problem
from submax.core.spaces import Choices

World = TypeVar("World")


class Outcome(NamedTuple):
    """Drawn rewards and their expectations, both ``[R, n]``."""

    reward: Floats
    mean: Floats


class Environment(Checked, ABC, Generic[World]):
    """A distribution over worlds. A world is the hidden truth of all replicas."""

    @property
    @abstractmethod
    def problem(self) -> Problem:
        """The problem that policies are given: action space, context width, reward scale."""

    @abstractmethod
    def reset(self, replicas: int, rng: np.random.Generator) -> World:
        """Draw the hidden truth of each replica."""

    @abstractmethod
    def contexts(self, world: World, count: int, rng: np.random.Generator) -> Floats:
        """Draw ``count`` contexts for each replica: ``[R, count, D]``."""

    @abstractmethod
    def mean_reward(self, world: World, context: Floats, action: Actions) -> Floats:
        """Return the expected reward of ``action [R, n, S]``: ``[R, n]``."""

    @abstractmethod
    def reward(
        self, world: World, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Floats:
        """Draw the reward of ``action [R, n, S]``: ``[R, n]``."""

    def outcome(
        self, world: World, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Outcome:
        """Return drawn rewards with their expectations; override it to compute these once."""
        reward = self.reward(world, context, action, rng)
        return Outcome(reward, self.mean_reward(world, context, action))

    @abstractmethod
    def best_reward(self, world: World, context: Floats) -> Floats:
        """Return the expected reward of the best action in each context: ``[R, n]``."""

    def regret(self, world: World, context: Floats, action: Actions) -> Floats:
        """Return the expected regret of ``action [R, n, S]``: ``[R, n]``, at least 0.

        Override it if rewards are not what a decision is worth, as in `Dueling`.
        """
        return self.best_reward(world, context) - self.mean_reward(world, context, action)

    def eligible(self, number: int) -> Choices | None:
        """Return the choices eligible in decision ``number``, from 0; None, the default: all."""
        return None

    @property
    def most_decisions(self) -> int | None:
        """Largest number of decisions per replica, such as the rows of a table; None: no limit."""
        return None

    @property
    def shared(self) -> bool:
        """Whether all replicas have the same truth and no contexts, so they are identical."""
        return False

    @property
    def drifts(self) -> bool:
        """Whether the same world changes with time: by default, whether ``advance`` is overridden.

        If so, ``simulate`` calls ``advance`` after every single decision, so the truth does not
        depend on the delay.
        """
        return type(self).advance is not Environment.advance

    def advance(self, world: World, count: int, rng: np.random.Generator) -> World:
        """Return the world after ``count`` more decisions. By default it does not change."""
        return world
