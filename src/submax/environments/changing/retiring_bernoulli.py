"""Bernoulli arms that retire and are replaced by new ones."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import at_least, positive, whole_number
from submax.environments.arms.binary_arm_environment import BinaryArmEnvironment


@dataclass(frozen=True)
class RetiringBernoulli(BinaryArmEnvironment[Floats]):
    """K arms with rewards 0 and 1; after each decision an arm retires with probability 1/L.

    A new arm takes its place, with a success probability from Beta(``alpha``, ``beta``). K is
    ``arms``; L is ``lifetime``, the mean number of decisions that an arm is there. The world is
    the table of success probabilities, ``[R, K]``.

    Reference: Chakrabarti et al. (2008), Mortal multi-armed bandits.
    """

    arms: int
    lifetime: float = 1000.0
    alpha: float = 1.0
    beta: float = 1.0

    def __post_init__(self) -> None:
        whole_number("arms", self.arms, at_least=1)
        at_least("lifetime", self.lifetime, 1.0)
        positive("alpha", self.alpha)
        positive("beta", self.beta)

    def reset(self, replicas: int, rng: np.random.Generator) -> Floats:
        return rng.beta(self.alpha, self.beta, size=(replicas, self.arms))

    def advance(self, world: Floats, count: int, rng: np.random.Generator) -> Floats:
        for _ in range(count):
            retired = rng.random(world.shape) < 1 / self.lifetime
            # Drawn for all arms, so that the random numbers do not depend on who retires.
            world = np.where(retired, self.reset(len(world), rng), world)
        return world

    def arm_means(self, world: Floats) -> Floats:
        return world
