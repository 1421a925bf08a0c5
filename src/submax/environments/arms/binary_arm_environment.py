"""Base class of environments whose arms have rewards 0 and 1."""

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.contracts.environment import Outcome, World
from submax.core.contracts.problem import Problem
from submax.core.spaces.arms import Arms
from submax.environments.arms.arm_environment import ArmEnvironment


class BinaryArmEnvironment(ArmEnvironment[World]):
    """K ``arms``; the mean reward of an arm is its success probability."""

    @property
    def problem(self) -> Problem:
        return Problem(Arms(self.arms))

    def outcome(
        self, world: World, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Outcome:
        probability = self.mean_reward(world, context, action)
        success = rng.random(probability.shape) < probability
        return Outcome(success.astype(np.float64), probability)

    def success_probabilities(self, world: World) -> Floats:
        return self.arm_means(world)
