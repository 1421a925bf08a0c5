"""Arms that drift, switch, or are eligible only at times."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy

from submax.core.arrays import Floats
from submax.core.checks import Count, Positive
from submax.core.errors import InputError
from submax.core.spaces import Choices
from submax.environments.arms import Bernoulli, BinaryArmEnvironment, GivenMeans


def drifted(value: Floats, fresh: Floats, count: int, memory: float) -> Floats:
    """The values x after n more decisions: ρⁿ x + √(1 − ρ²ⁿ) x′ with ρ = exp(−1 / memory).

    x is ``value``, n is ``count``, and x′ is ``fresh``, an independent draw from the distribution
    of x. If x has mean zero, its mean and variance stay the same; its correlation with the past
    falls to 1/e after ``memory`` decisions.
    """
    kept = math.exp(-count / memory)
    new = math.sqrt(-math.expm1(-2 * count / memory))
    return kept * value + new * fresh


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
    of N(0, 1), F that of Beta(``alpha``, ``beta``), so at any time the success probabilities
    have exactly the distribution they have in `Bernoulli`. K is ``arms``. ``memory`` is the number
    of decisions after which the correlation of x with its past has fallen to 1/e; after a few times
    this number, a success probability is almost independent of its earlier value.

    Reference: Uhlenbeck and Ornstein (1930), On the theory of the Brownian motion.
    """

    arms: Count
    alpha: Positive = 1.0
    beta: Positive = 1.0
    memory: Positive = 5000.0

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
        # Computed after every decision, so a closed form is used if there is one.
        if self.alpha == 1:
            # F(p) = 1 − (1 − p)^β
            probability = -np.expm1(scipy.special.log_ndtr(-path) / self.beta)
        else:
            below = scipy.special.ndtr(path)
            probability = scipy.special.betaincinv(self.alpha, self.beta, below)
        return DriftingProbabilities(path, probability)


class CountedWorld(NamedTuple):
    """The success probabilities now, ``[R, K]``, and the number of decisions so far."""

    probability: Floats
    decisions: int


@dataclass(frozen=True)
class SleepingBernoulli(BinaryArmEnvironment[CountedWorld], GivenMeans[CountedWorld]):
    """K arms with rewards 0 and 1; decision t has only the arms ``sets[t mod len(sets)]``.

    The success probabilities are drawn from Beta(``alpha``, ``beta``), or are the ``means``. Regret
    is that of the best eligible arm.

    >>> SleepingBernoulli(((0, 1, 2), (0, 1)), means=(0.05, 0.5, 0.9)).eligible(1)
    ((0, 1),)

    Reference: Kleinberg, Niculescu-Mizil and Sharma (2010), Regret bounds for sleeping experts and
    bandits.
    """

    sets: tuple[tuple[int, ...], ...]
    arms: int = 0
    alpha: Positive = 1.0
    beta: Positive = 1.0
    means: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "sets", tuple(tuple(one) for one in self.sets))
        known = set(range(self.arms))
        if not self.sets or not all(one and set(one) <= known for one in self.sets):
            raise InputError(
                f"sets must be one or more sets of arms from 0 to {self.arms - 1}, none empty, "
                f"not {self.sets!r:.80}",
                parameter="sets",
            )

    def eligible(self, number: int) -> Choices:
        return (self.sets[number % len(self.sets)],)

    def reset(self, replicas: int, rng: np.random.Generator) -> CountedWorld:
        arms = Bernoulli(self.arms, self.alpha, self.beta, self.means)
        return CountedWorld(arms.reset(replicas, rng), 0)

    def advance(self, world: CountedWorld, count: int, rng: np.random.Generator) -> CountedWorld:
        return world._replace(decisions=world.decisions + count)

    def arm_means(self, world: CountedWorld) -> Floats:
        return world.probability

    def best_reward(self, world: CountedWorld, context: Floats) -> Floats:
        numbers = range(world.decisions, world.decisions + context.shape[1])
        best = [world.probability[:, self.eligible(one)[0]].max(axis=1) for one in numbers]
        return np.stack(best, axis=1) if best else np.zeros(context.shape[:2])
