"""Bernoulli arms whose chances change."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy import special

from submax.core.arrays import Floats
from submax.core.checks import positive, whole_number
from submax.environments.arms.binary_arm_environment import BinaryArmEnvironment
from submax.environments.arms.drift import drifted


class DriftingProbabilities(NamedTuple):
    """``path [R, K]`` is x, ``chance [R, K]`` what it stands for."""

    path: Floats
    chance: Floats


@dataclass(frozen=True)
class DriftingBernoulli(BinaryArmEnvironment[DriftingProbabilities]):
    """K arms that pay 0 or 1, with chances F⁻¹(Φ(x)) that move with an Ornstein–Uhlenbeck path x.

    x starts from N(0, 1) and after n decisions is ρⁿ x + √(1 − ρ²ⁿ) ξ, ξ ~ N(0, 1), with
    ρ = exp(−1 / ``memory``). Φ is the normal distribution, F that of Beta(``alpha``, ``beta``):
    at any time the chances have exactly this law, as those of `Bernoulli`. K is ``arms``. An arm
    has forgotten most of what it was after a few times ``memory`` decisions.

    Reference: Uhlenbeck and Ornstein (1930), On the theory of the Brownian motion.
    """

    arms: int
    alpha: float = 1.0
    beta: float = 1.0
    memory: float = 5000.0

    def __post_init__(self) -> None:
        whole_number("arms", self.arms, at_least=1)
        for name in ("alpha", "beta", "memory"):
            positive(name, getattr(self, name))

    def reset(self, replicas: int, rng: np.random.Generator) -> DriftingProbabilities:
        """Draw the start of every path."""
        return self._at(rng.standard_normal((replicas, self.arms)))

    def advance(self, world: DriftingProbabilities, count: int, rng: np.random.Generator) -> DriftingProbabilities:
        """Move every path on."""
        fresh = rng.standard_normal(world.path.shape)
        return self._at(drifted(world.path, fresh, count, self.memory))

    def means(self, world: DriftingProbabilities) -> Floats:
        """The chances, as they are now."""
        return world.chance

    def _at(self, path: Floats) -> DriftingProbabilities:
        return DriftingProbabilities(path, special.betaincinv(self.alpha, self.beta, special.ndtr(path)))

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Slow and dense, fast and sparse, and one arm."""
        yield cls(3)
        yield cls(20, alpha=1.0, beta=9.0, memory=100.0)
        yield cls(1, alpha=0.5, beta=0.5)
