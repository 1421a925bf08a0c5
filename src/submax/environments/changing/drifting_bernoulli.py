"""Bernoulli arms whose success probabilities drift."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from submax.core.arrays import Floats
from submax.core.checks import positive, whole_number
from submax.environments.arms.binary_arm_environment import BinaryArmEnvironment
from submax.environments.changing.drift import drifted


class DriftingProbabilities(NamedTuple):
    """The state x of the drift of each arm, ``path [R, K]``, and ``probability [R, K]``.

    The success probability of an arm is F⁻¹(Φ(x)), see `DriftingBernoulli`.
    """

    path: Floats
    probability: Floats


@dataclass(frozen=True)
class DriftingBernoulli(BinaryArmEnvironment[DriftingProbabilities]):
    """K arms with rewards 0 and 1, whose success probabilities F⁻¹(Φ(x)) drift over time.

    x is an Ornstein–Uhlenbeck path: it starts from N(0, 1) and after n decisions is
    ρⁿ x + √(1 − ρ²ⁿ) ξ, ξ ~ N(0, 1), with ρ = exp(−1 / ``memory``). Φ is the distribution function
    of N(0, 1), F that of Beta(``alpha``, ``beta``), so that at any time the success probabilities
    have exactly the distribution they have in `Bernoulli`. K is ``arms``. ``memory`` is the number
    of decisions after which the correlation of x with its past has fallen to 1/e; after a few times
    this number, a success probability is almost independent of its earlier value.

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
        return self._at(rng.standard_normal((replicas, self.arms)))

    def advance(
        self, world: DriftingProbabilities, count: int, rng: np.random.Generator
    ) -> DriftingProbabilities:
        fresh = rng.standard_normal(world.path.shape)
        return self._at(drifted(world.path, fresh, count, self.memory))

    def arm_means(self, world: DriftingProbabilities) -> Floats:
        return world.probability

    def _at(self, path: Floats) -> DriftingProbabilities:
        return DriftingProbabilities(path, self._quantile(path))

    def _quantile(self, path: Floats) -> Floats:
        """Return F⁻¹(Φ(x)); it is computed after every decision, so closed forms are used."""
        if self.alpha == 1:
            # F(p) = 1 − (1 − p)^β
            near_zero: Floats = -np.expm1(scipy.special.log_ndtr(-path) / self.beta)
            return near_zero
        if self.beta == 1:
            # F(p) = p^α
            power: Floats = np.exp(scipy.special.log_ndtr(path) / self.alpha)
            return power
        quantile: Floats = scipy.special.betaincinv(self.alpha, self.beta, scipy.special.ndtr(path))
        return quantile
