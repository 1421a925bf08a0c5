"""A few good arms among many bad ones."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import probability, whole_number
from submax.core.errors import InputError
from submax.environments.arms.binary_arm_environment import BinaryArmEnvironment


@dataclass(frozen=True)
class FewGood(BinaryArmEnvironment[Floats]):
    """K arms with rewards 0 and 1: ``good`` of them succeed with probability ``high``.

    The other arms succeed with probability ``low``. K is ``arms``; which arms are good is drawn at
    random. No Beta distribution is close to this prior, so that it tests policies that assume one.
    The world is the table of success probabilities, ``[R, K]``.
    """

    arms: int
    good: int = 1
    high: float = 0.3
    low: float = 0.05

    def __post_init__(self) -> None:
        whole_number("arms", self.arms, at_least=1)
        whole_number("good", self.good, at_least=1, at_most=self.arms)
        for name in ("high", "low"):
            probability(name, getattr(self, name))
        if self.low > self.high:
            raise InputError(
                f"low must be at most high, not {self.low} and {self.high}: exchange the two",
                parameter="low",
            )

    def reset(self, replicas: int, rng: np.random.Generator) -> Floats:
        probability = np.full((replicas, self.arms), self.low)
        probability[:, : self.good] = self.high
        return rng.permuted(probability, axis=1)

    def arm_means(self, world: Floats) -> Floats:
        return world
