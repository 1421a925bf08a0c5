"""Bernoulli arms."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import positive, probability
from submax.environments.arms.binary_arm_environment import BinaryArmEnvironment
from submax.environments.arms.given_means import count_arms


@dataclass(frozen=True)
class Bernoulli(BinaryArmEnvironment[Floats]):
    """K arms with rewards 0 and 1; the success probability of each is drawn from Beta(α, β).

    K is ``arms``, α is ``alpha``, β is ``beta``. If ``means`` are given, they are the success
    probabilities in every replica, and nothing is drawn. The world is the table of success
    probabilities, ``[R, K]``.

    >>> Bernoulli.of([0.9, 0.8, 0.7]).arms
    3

    Reference: Xu et al. (2024), section 4.1.
    """

    arms: int = 0
    alpha: float = 1.0
    beta: float = 1.0
    means: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        arms = count_arms(self, self.arms, self.means, probability)
        object.__setattr__(self, "arms", arms)
        positive("alpha", self.alpha)
        positive("beta", self.beta)

    @classmethod
    def of(cls, means: Iterable[float]) -> Self:
        """Arms with these success probabilities."""
        return cls(means=tuple(map(float, means)))

    @property
    def shared(self) -> bool:
        return self.means is not None

    def reset(self, replicas: int, rng: np.random.Generator) -> Floats:
        if self.means is not None:
            return np.tile(self.means, (replicas, 1))
        return rng.beta(self.alpha, self.beta, size=(replicas, self.arms))

    def arm_means(self, world: Floats) -> Floats:
        return world
