"""Base class of environments that show a list of items."""

from abc import abstractmethod

import numpy as np

from submax.core.arrays import Actions, Booleans, Floats
from submax.core.checks import positive, whole_number
from submax.core.contracts.environment import Environment, Outcome
from submax.core.spaces.slots import Slots


class SlateEnvironment(Environment[Floats]):
    """An action puts one of N ``items`` into each of K ``positions``.

    The attraction w_i of an item, the probability that someone who looks at it clicks on it, is
    drawn from Beta(``alpha``, ``beta``). An item that is shown twice is not clicked the second
    time. The world is the table of attractions, ``[R, N]``.
    """

    items: int
    positions: int
    alpha: float
    beta: float

    def check_slate(self) -> None:
        """Refuse parameters that are not allowed."""
        whole_number("items", self.items, at_least=1)
        whole_number("positions", self.positions, at_least=1, at_most=self.items)
        positive("alpha", self.alpha)
        positive("beta", self.beta)

    @property
    def space(self) -> Slots:
        """The space of slates: one item for each position."""
        return Slots((self.items,) * self.positions)

    def reset(self, replicas: int, rng: np.random.Generator) -> Floats:
        return rng.beta(self.alpha, self.beta, size=(replicas, self.items))

    def contexts(self, world: Floats, count: int, rng: np.random.Generator) -> Floats:
        return np.zeros((len(world), count, 0))

    def reward(
        self, world: Floats, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Floats:
        return self.outcome(world, context, action, rng).reward

    def mean_reward(self, world: Floats, context: Floats, action: Actions) -> Floats:
        return self.mean_of(self.attraction(world, action))

    def outcome(
        self, world: Floats, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Outcome:
        attraction = self.attraction(world, action)
        clicks = rng.random(attraction.shape) < self.looked_at() * attraction
        return Outcome(self.reward_of(clicks), self.mean_of(attraction))

    def best_reward(self, world: Floats, context: Floats) -> Floats:
        best = np.sort(world, axis=1)[:, None, : -self.positions - 1 : -1]
        return np.broadcast_to(self.mean_of(best), context.shape[:2])

    def attraction(self, world: Floats, action: Actions) -> Floats:
        """Return the attraction of each position, ``[R, n, K]``; that of a repeated item is 0."""
        repeated = np.zeros(action.shape, dtype=bool)
        for position in range(1, self.positions):
            earlier = action[..., :position] == action[..., position, None]
            repeated[..., position] = earlier.any(axis=-1)
        found = world[np.arange(len(world))[:, None, None], action]
        return np.where(repeated, 0.0, found)

    @abstractmethod
    def looked_at(self) -> Floats:
        """Return the probability that someone looks at each position, ``[K]``."""

    @abstractmethod
    def reward_of(self, clicks: Booleans) -> Floats:
        """Return the reward if these positions would be clicked when looked at."""

    @abstractmethod
    def mean_of(self, attraction: Floats) -> Floats:
        """Return the mean reward of slates with these attractions, ``[..., K] -> [...]``."""
