"""Arms with normally distributed rewards."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.checks import finite, non_negative, positive
from submax.core.contracts.environment import Outcome
from submax.core.contracts.problem import Problem
from submax.core.rewards.continuous import Continuous
from submax.core.spaces.arms import Arms
from submax.environments.arms.arm_environment import ArmEnvironment
from submax.environments.arms.given_means import count_arms


@dataclass(frozen=True)
class Gaussian(ArmEnvironment[Floats]):
    """K arms with rewards μ_a + σ ε, ε ~ N(0, 1); the mean μ_a of each is drawn from N(0, τ²).

    K is ``arms``, τ is ``spread``, σ is ``noise``. If ``means`` are given, they are μ in every
    replica, and nothing is drawn. The world is the table of means, ``[R, K]``.

    >>> Gaussian.of([1.0, 0.0], noise=0.5).arms
    2
    """

    arms: int = 0
    spread: float = 1.0
    noise: float = 1.0
    means: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "arms", count_arms(self, self.arms, self.means, finite))
        positive("spread", self.spread)
        non_negative("noise", self.noise)

    @classmethod
    def of(cls, means: Iterable[float], noise: float = 1.0) -> Self:
        """Arms with these means."""
        return cls(noise=noise, means=tuple(map(float, means)))

    @property
    def shared(self) -> bool:
        return self.means is not None

    @property
    def problem(self) -> Problem:
        return Problem(Arms(self.arms), scale=Continuous())

    def reset(self, replicas: int, rng: np.random.Generator) -> Floats:
        if self.means is not None:
            return np.tile(self.means, (replicas, 1))
        return self.spread * rng.standard_normal((replicas, self.arms))

    def arm_means(self, world: Floats) -> Floats:
        return world

    def outcome(
        self, world: Floats, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Outcome:
        mean = self.mean_reward(world, context, action)
        return Outcome(mean + self.noise * rng.standard_normal(mean.shape), mean)
