"""Arms with normally distributed rewards."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.checks import non_negative, positive, whole_number
from submax.core.contracts.environment import Outcome
from submax.core.contracts.problem import Problem
from submax.core.rewards.continuous import Continuous
from submax.core.spaces.arms import Arms
from submax.environments.arms.arm_environment import ArmEnvironment


@dataclass(frozen=True)
class Gaussian(ArmEnvironment[Floats]):
    """K arms with rewards μ_a + σ ε, ε ~ N(0, 1); the mean μ_a of each is drawn from N(0, τ²).

    K is ``arms``, τ is ``spread``, σ is ``noise``. The world is the table of means, ``[R, K]``.
    """

    arms: int
    spread: float = 1.0
    noise: float = 1.0

    def __post_init__(self) -> None:
        whole_number("arms", self.arms, at_least=1)
        positive("spread", self.spread)
        non_negative("noise", self.noise)

    @property
    def problem(self) -> Problem:
        return Problem(Arms(self.arms), scale=Continuous())

    def reset(self, replicas: int, rng: np.random.Generator) -> Floats:
        return self.spread * rng.standard_normal((replicas, self.arms))

    def means(self, world: Floats) -> Floats:
        return world

    def outcome(
        self, world: Floats, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Outcome:
        mean = self.mean_reward(world, context, action)
        return Outcome(mean + self.noise * rng.standard_normal(mean.shape), mean)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """The default, much noise, and none."""
        yield cls(4)
        yield cls(10, spread=0.5, noise=3.0)
        yield cls(1, noise=0.0)
