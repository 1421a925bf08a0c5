"""Arms whose rewards are counts."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.checks import positive, whole_number
from submax.core.contracts.environment import Outcome
from submax.core.contracts.problem import Problem
from submax.core.rewards.counts import Counts
from submax.core.spaces.arms import Arms
from submax.environments.arms.arm_environment import ArmEnvironment


@dataclass(frozen=True)
class Poisson(ArmEnvironment[Floats]):
    """K arms with rewards from Poisson(λ_a); the rate λ_a of each is drawn from Gamma(k, θ).

    K is ``arms``, k is ``shape``, θ = m / k with m the ``mean`` of the rates. The world is the
    table of rates, ``[R, K]``.
    """

    arms: int
    shape: float = 2.0
    mean: float = 1.0

    def __post_init__(self) -> None:
        whole_number("arms", self.arms, at_least=1)
        positive("shape", self.shape)
        positive("mean", self.mean)

    @property
    def problem(self) -> Problem:
        return Problem(Arms(self.arms), scale=Counts())

    def reset(self, replicas: int, rng: np.random.Generator) -> Floats:
        return rng.gamma(self.shape, self.mean / self.shape, size=(replicas, self.arms))

    def arm_means(self, world: Floats) -> Floats:
        return world

    def outcome(
        self, world: Floats, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Outcome:
        rate = self.mean_reward(world, context, action)
        return Outcome(rng.poisson(rate).astype(np.float64), rate)
