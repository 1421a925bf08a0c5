"""Base class of environments with plain arms and no context."""

from abc import abstractmethod
from functools import lru_cache

import numpy as np

from submax.core.arrays import Actions, Floats, Integers
from submax.core.contracts.environment import Environment, World


class ArmEnvironment(Environment[World]):
    """K ``arms``, each with a mean reward that is the same for all decisions."""

    arms: int

    @abstractmethod
    def arm_means(self, world: World) -> Floats:
        """The mean reward of every arm: ``[R, K]``."""

    def contexts(self, world: World, count: int, rng: np.random.Generator) -> Floats:
        return np.zeros((len(self.arm_means(world)), count, 0))

    def mean_reward(self, world: World, context: Floats, action: Actions) -> Floats:
        means = self.arm_means(world)
        first = _first_places(*means.shape)
        return means.ravel().take(first + action[..., 0])

    def reward(
        self, world: World, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Floats:
        return self.outcome(world, context, action, rng).reward

    def best_reward(self, world: World, context: Floats) -> Floats:
        return np.broadcast_to(self.arm_means(world).max(axis=-1)[:, None], context.shape[:2])


@lru_cache(16)
def _first_places(replicas: int, arms: int) -> Integers:
    """Return where the arms of each replica begin in the flattened table of means, ``[R, 1]``."""
    first = np.arange(replicas, dtype=np.int64)[:, None] * arms
    first.setflags(write=False)
    return first
