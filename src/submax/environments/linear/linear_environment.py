"""Base class of environments whose mean reward depends on a product of parameters and context."""

import math
from abc import abstractmethod

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.contracts.environment import Environment
from submax.environments.linear.given_table import Rows, checked_rows


class LinearEnvironment(Environment[Floats]):
    """K arms, each with parameters θ_a in R^D; the mean reward is a rising function of θ_a · c.

    Contexts c are normal with independent numbers of mean 0 and variance 1. θ_a is drawn from
    N(0, I τ² / D), so that θ_a · c has the standard deviation τ, unless ``parameters`` are given.
    The world is the table of parameters, ``[R, K, D]``.
    """

    arms: int
    dimension: int
    spread: float
    parameters: Rows | None

    @abstractmethod
    def mean_of(self, product: Floats) -> Floats:
        """Return the mean rewards of actions with these products θ_a · c."""

    def reset(self, replicas: int, rng: np.random.Generator) -> Floats:
        if self.parameters is not None:
            table = checked_rows("parameters", self.parameters, self.arms, self.dimension)
            return np.tile(table, (replicas, 1, 1))
        drawn = rng.standard_normal((replicas, self.arms, self.dimension))
        return drawn * (self.spread / math.sqrt(self.dimension))

    def contexts(self, world: Floats, count: int, rng: np.random.Generator) -> Floats:
        return rng.standard_normal((len(world), count, self.dimension))

    def mean_reward(self, world: Floats, context: Floats, action: Actions) -> Floats:
        chosen = np.take_along_axis(world, action, axis=1)
        return self.mean_of(np.einsum("rnd,rnd->rn", chosen, context))

    def reward(
        self, world: Floats, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Floats:
        return self.outcome(world, context, action, rng).reward

    def best_reward(self, world: Floats, context: Floats) -> Floats:
        # The same sum as in mean_reward, arm by arm, so that no arm is better by rounding.
        product = np.einsum("rkd,rnd->rkn", world, context).max(axis=1)
        return self.mean_of(product)
