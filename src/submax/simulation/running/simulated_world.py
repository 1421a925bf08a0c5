"""Base class of the world of a running simulation."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.contracts.environment import Environment

DRAWING = ("reward", "outcome", "mean_reward", "best_reward", "contexts", "advance", "regret")
"""The methods of an environment that are not called if success probabilities are known."""


class WorldRandomness(NamedTuple):
    """The random streams of an environment: its truth, its contexts, and its rewards."""

    truth: np.random.Generator
    context: np.random.Generator
    reward: np.random.Generator


class Played(NamedTuple):
    """The rewards of some decisions and their expected regret, both ``[R, n]``."""

    reward: Floats
    regret: Floats


class SimulatedWorld(ABC):
    """An environment, the hidden truth that was drawn from it, and its random streams."""

    def __init__(
        self, environment: Environment[Any], replicas: int, random: WorldRandomness
    ) -> None:
        self.environment = environment
        self.replicas = replicas
        self.random = random
        self.world = environment.reset(replicas, random.truth)
        self.context_width = environment.problem.context_width
        self.regrets_rewards = type(environment).regret is Environment.regret
        """Whether regret is the best expected reward minus that of the action."""
        self._empty: dict[int, Floats] = {}

    @abstractmethod
    def contexts(self, count: int) -> Floats:
        """Return the contexts of the next ``count`` decisions, ``[R, count, D]``."""

    @abstractmethod
    def play(self, context: Floats, action: Actions) -> Played:
        """Take the decisions of ``contexts``, whose actions are given, and move on."""

    def success_probabilities(self) -> Floats | None:
        """Return the probability of reward 1 for every joint action, if that is all there is.

        See `Environment.success_probabilities`. None if the truth changes, if regret is not the
        best expected reward minus that of the action, or if a subclass of the environment overrides
        one of the methods that need not be called then.
        """
        if not self.regrets_rewards:
            return None
        order = type(self.environment).__mro__
        known = definer(order, "success_probabilities")
        if self.environment.drifts or any(definer(order, name) < known for name in DRAWING):
            return None
        return self.environment.success_probabilities(self.world)

    def no_contexts(self, count: int) -> Floats:
        """Return contexts without numbers, ``[R, count, 0]``, which are made once."""
        if count not in self._empty:
            self._empty[count] = np.zeros((self.replicas, count, 0))
        return self._empty[count]


def definer(order: tuple[type, ...], name: str) -> int:
    """Return the place of the first class in the method resolution order that defines a name."""
    return next(place for place, kind in enumerate(order) if name in vars(kind))
