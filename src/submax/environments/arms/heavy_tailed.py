"""Arms whose rewards have heavy tails."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.checks import finite, non_negative, positive
from submax.core.contracts.environment import Outcome
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.rewards.continuous import Continuous
from submax.core.spaces.arms import Arms
from submax.environments.arms.arm_environment import ArmEnvironment
from submax.environments.arms.given_means import count_arms


@dataclass(frozen=True)
class HeavyTailed(ArmEnvironment[Floats]):
    """K arms with rewards μ_a + σ t_ν, where t_ν has Student's distribution with ν degrees.

    K is ``arms``, σ is ``noise``, ν is ``degrees``, above 1, so that the mean exists. Moments of
    order ν and above do not exist: for ν up to 2 the variance is infinite. The mean μ_a is drawn
    from N(0, τ²), τ is ``spread``, unless ``means`` are given. The world is the table of means.

    Reference: Bubeck, Cesa-Bianchi and Lugosi (2013), Bandits with heavy tail.
    """

    arms: int = 0
    degrees: float = 3.0
    spread: float = 1.0
    noise: float = 1.0
    means: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "arms", count_arms(self, self.arms, self.means, finite))
        positive("spread", self.spread)
        non_negative("noise", self.noise)
        positive("degrees", self.degrees)
        if self.degrees <= 1:
            raise InputError(
                f"degrees must be above 1, because otherwise rewards have no mean, not "
                f"{self.degrees}: take a larger number, such as 1.5",
                parameter="degrees",
            )

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
        return Outcome(mean + self.noise * rng.standard_t(self.degrees, mean.shape), mean)
