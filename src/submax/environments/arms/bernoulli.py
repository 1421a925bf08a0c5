"""Bernoulli arms."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import positive, whole_number
from submax.environments.arms.binary_arm_environment import BinaryArmEnvironment


@dataclass(frozen=True)
class Bernoulli(BinaryArmEnvironment[Floats]):
    """K arms with rewards 0 and 1; the success probability of each is drawn from Beta(α, β).

    K is ``arms``, α is ``alpha``, β is ``beta``. The world is the table of success probabilities,
    ``[R, K]``.

    Reference: Xu et al. (2024), section 4.1.
    """

    arms: int
    alpha: float = 1.0
    beta: float = 1.0

    def __post_init__(self) -> None:
        whole_number("arms", self.arms, at_least=1)
        positive("alpha", self.alpha)
        positive("beta", self.beta)

    def reset(self, replicas: int, rng: np.random.Generator) -> Floats:
        return rng.beta(self.alpha, self.beta, size=(replicas, self.arms))

    def means(self, world: Floats) -> Floats:
        return world

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """One arm, few dense arms, many sparse ones."""
        yield cls(1)
        yield cls(3)
        yield cls(20, alpha=1.0, beta=9.0)
