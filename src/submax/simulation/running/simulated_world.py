"""Base class of the world of a running simulation."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.contracts.environment import Environment


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
        self._empty: dict[int, Floats] = {}

    @abstractmethod
    def contexts(self, count: int) -> Floats:
        """Return the contexts of the next ``count`` decisions, ``[R, count, D]``."""

    @abstractmethod
    def play(self, context: Floats, action: Actions) -> Played:
        """Take the decisions of ``contexts``, whose actions are given, and move on."""

    def no_contexts(self, count: int) -> Floats:
        """Return contexts without numbers, ``[R, count, 0]``, which are made once."""
        if count not in self._empty:
            self._empty[count] = np.zeros((self.replicas, count, 0))
        return self._empty[count]
