"""Base class of environments in which a random network gives the success probabilities."""

from abc import abstractmethod

import numpy as np
import scipy

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
    """Rewards 0 and 1 with P(1 | a, c) = σ(f(onehot(a) ⊕ c) + s), where f is a random network."""

    dimension: int
    shift: float
    hidden: int

    @property
    @abstractmethod
    def space(self) -> Space:
        """The space of actions."""

    @property
    def problem(self) -> Problem:
        return Problem(self.space, self.dimension)

    def reset(self, replicas: int, rng: np.random.Generator) -> TruthNetwork:
        choices = sum(self.space.choices)
        return draw_network(replicas, choices, self.dimension, self.hidden, rng)

    def contexts(self, world: TruthNetwork, count: int, rng: np.random.Generator) -> Floats:
        return draw_directions(len(world.output_weight), count, self.dimension, rng)

    def mean_reward(self, world: TruthNetwork, context: Floats, action: Integers) -> Floats:
        output = logits(world, self.space.choices, context, action)
        probability: Floats = scipy.special.expit(output + self.shift)
        return probability

    def reward(
        self, world: TruthNetwork, context: Floats, action: Integers, rng: np.random.Generator
    ) -> Floats:
        return self.outcome(world, context, action, rng).reward

    def outcome(
        self, world: TruthNetwork, context: Floats, action: Integers, rng: np.random.Generator
    ) -> Outcome:
        probability = self.mean_reward(world, context, action)
        success = rng.random(probability.shape) < probability
        return Outcome(success.astype(np.float64), probability)

    def best_reward(self, world: TruthNetwork, context: Floats) -> Floats:
        output = highest_logits(world, self.space.choices, context)
        probability: Floats = scipy.special.expit(output + self.shift)
        return probability
