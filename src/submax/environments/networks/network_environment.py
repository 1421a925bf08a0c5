"""What the environments with a random network as truth have in common."""

from abc import abstractmethod

import numpy as np
from scipy import special

from submax.core.arrays import Floats, Integers
from submax.core.contracts.environment import Environment, Outcome
from submax.core.contracts.problem import Problem
from submax.core.spaces.space import Space
from submax.environments.networks.highest_logits import highest_logits
from submax.environments.networks.truth_network import (
    TruthNetwork,
    draw_directions,
    draw_network,
    logits,
)


class NetworkEnvironment(Environment[TruthNetwork]):
    """Actions that pay 0 or 1 with P(1 | a, c) = σ(f(onehot(a) ⊕ c) + s), f a random network."""

    dimension: int
    shift: float
    hidden: int

    @property
    @abstractmethod
    def space(self) -> Space:
        """The actions."""

    @property
    def problem(self) -> Problem:
        """The actions, a context, rewards 0 and 1."""
        return Problem(self.space, self.dimension)

    def reset(self, replicas: int, rng: np.random.Generator) -> TruthNetwork:
        """Draw a network for each replica."""
        choices = sum(self.space.choices)
        return draw_network(replicas, choices, self.dimension, self.hidden, rng)

    def contexts(self, world: TruthNetwork, count: int, rng: np.random.Generator) -> Floats:
        """Points on the unit sphere."""
        return draw_directions(len(world.output_weight), count, self.dimension, rng)

    def mean_reward(self, world: TruthNetwork, context: Floats, action: Integers) -> Floats:
        """The chance that the network gives."""
        output = logits(world, self.space.choices, context, action)
        chance: Floats = special.expit(output + self.shift)
        return chance

    def reward(
        self, world: TruthNetwork, context: Floats, action: Integers, rng: np.random.Generator
    ) -> Floats:
        """Toss the coin of the action."""
        return self.outcome(world, context, action, rng).reward

    def outcome(
        self, world: TruthNetwork, context: Floats, action: Integers, rng: np.random.Generator
    ) -> Outcome:
        """Run the network once for both."""
        chance = self.mean_reward(world, context, action)
        return Outcome((rng.random(chance.shape) < chance).astype(np.float64), chance)

    def best_reward(self, world: TruthNetwork, context: Floats) -> Floats:
        """The highest chance of all actions in each context."""
        output = highest_logits(world, self.space.choices, context)
        chance: Floats = special.expit(output + self.shift)
        return chance
