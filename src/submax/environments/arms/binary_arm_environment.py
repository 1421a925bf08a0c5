"""What environments of arms that pay 0 or 1 have in common."""

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.contracts.environment import Outcome, World
from submax.core.contracts.problem import Problem
from submax.core.spaces.arms import Arms
from submax.environments.arms.arm_environment import ArmEnvironment


class BinaryArmEnvironment(ArmEnvironment[World]):
    """K ``arms``; the mean of each is the chance that it pays."""

    @property
    def problem(self) -> Problem:
        """Plain arms, no context, rewards 0 and 1."""
        return Problem(Arms(self.arms))

    def outcome(
        self, world: World, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Outcome:
        """Look the chance up once for both."""
        chance = self.mean_reward(world, context, action)
        return Outcome((rng.random(chance.shape) < chance).astype(np.float64), chance)
