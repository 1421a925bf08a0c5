"""Bernoulli arms whose success probabilities change abruptly."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import positive, whole_number
from submax.environments.arms.binary_arm_environment import BinaryArmEnvironment


class SwitchingWorld(NamedTuple):
    """The success probabilities now, ``[R, K]``, and the number of decisions so far."""

    probability: Floats
    decisions: int


@dataclass(frozen=True)
class SwitchingBernoulli(BinaryArmEnvironment[SwitchingWorld]):
    """K arms with rewards 0 and 1; after every ``period`` decisions all probabilities are new.

    K is ``arms``. The success probabilities of each period are drawn from Beta(``alpha``,
    ``beta``), independently of those before.

    Reference: the abruptly changing environments of Garivier and Moulines (2011).
    """

    arms: int
    period: int = 1000
    alpha: float = 1.0
    beta: float = 1.0

    def __post_init__(self) -> None:
        whole_number("arms", self.arms, at_least=1)
        whole_number("period", self.period, at_least=1)
        positive("alpha", self.alpha)
        positive("beta", self.beta)

    def reset(self, replicas: int, rng: np.random.Generator) -> SwitchingWorld:
        return SwitchingWorld(self._drawn(replicas, rng), 0)

    def advance(
        self, world: SwitchingWorld, count: int, rng: np.random.Generator
    ) -> SwitchingWorld:
        probability, after = world.probability, world.decisions + count
        for _ in range(after // self.period - world.decisions // self.period):
            probability = self._drawn(len(probability), rng)
        return SwitchingWorld(probability, after)

    def arm_means(self, world: SwitchingWorld) -> Floats:
        return world.probability

    def _drawn(self, replicas: int, rng: np.random.Generator) -> Floats:
        return rng.beta(self.alpha, self.beta, size=(replicas, self.arms))
