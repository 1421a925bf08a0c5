"""What environments of plain arms without context have in common."""

from abc import abstractmethod

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.contracts.environment import Environment, World


class ArmEnvironment(Environment[World]):
    """K ``arms`` with a mean each, the same in every row."""

    arms: int

    @abstractmethod
    def means(self, world: World) -> Floats:
        """The mean reward of every arm: ``[R, K]``."""

    def contexts(self, world: World, count: int, rng: np.random.Generator) -> Floats:
        """Contexts of width 0."""
        return np.zeros((len(self.means(world)), count, 0))

    def mean_reward(self, world: World, context: Floats, action: Actions) -> Floats:
        """Look the arm up."""
        means = self.means(world)
        rows = np.arange(len(means), dtype=np.int64)[:, None] * self.arms
        return means.ravel().take(rows + action[..., 0])

    def reward(
        self, world: World, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Floats:
        """Draw one reward for each action."""
        return self.outcome(world, context, action, rng).reward

    def best_reward(self, world: World, context: Floats) -> Floats:
        """The highest mean."""
        return np.broadcast_to(self.means(world).max(axis=-1)[:, None], context.shape[:2])
