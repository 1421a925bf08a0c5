"""Arms without context: Bernoulli, Gaussian, counts and ratings."""

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.checks import Count, NonNegative, Positive, finite, probability, whole_number
from submax.core.environment import Environment, Outcome, World
from submax.core.errors import InputError
from submax.core.problem import Problem
from submax.core.rewards import Continuous, Counts, Discrete
from submax.core.spaces import Arms


class WithOutcome(Environment[World]):
    """An environment that draws rewards and computes their means together, in ``outcome``."""

    @abstractmethod
    def outcome(
        self, world: World, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Outcome: ...

    def reward(
        self, world: World, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Floats:
        return self.outcome(world, context, action, rng).reward


class DrawnFromMean(WithOutcome[World]):
    """An environment whose rewards depend on a decision through their mean alone."""

    @abstractmethod
    def draw(self, mean: Floats, rng: np.random.Generator) -> Floats:
        """Draw a reward with each of these means."""

    def outcome(
        self, world: World, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Outcome:
        mean = self.mean_reward(world, context, action)
        return Outcome(self.draw(mean, rng), mean)


class Successes(DrawnFromMean[World]):
    """Rewards 0 and 1: the mean is the probability of 1."""

    def draw(self, mean: Floats, rng: np.random.Generator) -> Floats:
        return (rng.random(mean.shape) < mean).astype(np.float64)


class WithNoise(DrawnFromMean[World]):
    """Rewards that are the mean plus normal noise of standard deviation ``noise``."""

    noise: float

    def draw(self, mean: Floats, rng: np.random.Generator) -> Floats:
        return mean + self.noise * rng.standard_normal(mean.shape)


class ArmEnvironment(WithOutcome[World]):
    """K ``arms``, each with a mean reward that is the same for all decisions."""

    arms: int

    def arm_means(self, world: World) -> Floats:
        """The mean reward of every arm: ``[R, K]``; the world itself, unless it has more."""
        assert isinstance(world, np.ndarray)
        return world

    def contexts(self, world: World, count: int, rng: np.random.Generator) -> Floats:
        return np.zeros((len(self.arm_means(world)), count, 0))

    def mean_reward(self, world: World, context: Floats, action: Actions) -> Floats:
        means = self.arm_means(world)
        return means[np.arange(len(means))[:, None], action[..., 0]]

    def best_reward(self, world: World, context: Floats) -> Floats:
        return np.broadcast_to(self.arm_means(world).max(axis=-1)[:, None], context.shape[:2])


class BinaryArmEnvironment(Successes[World], ArmEnvironment[World]):
    """K ``arms``; the mean reward of an arm is its success probability."""

    @property
    def problem(self) -> Problem:
        return Problem(Arms(self.arms))


class GivenMeans(ArmEnvironment[World]):
    """Arms whose means are drawn for each replica, or are the given ``means`` in all of them."""

    means: tuple[float, ...] | None

    check_mean = staticmethod(probability)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.means is None:
            whole_number("arms", self.arms, at_least=1)
            return
        if not isinstance(self.means, tuple) or not self.means:
            raise InputError(
                "means must be a tuple with a number for each arm, such as (0.9, 0.8), not "
                f"{self.means!r}",
                parameter="means",
            )
        for mean in self.means:
            self.check_mean("each of means", mean)
        if self.arms not in (0, len(self.means)):
            raise InputError(
                f"arms is {self.arms} and there are {len(self.means)} means: leave arms out",
                parameter="arms",
            )
        object.__setattr__(self, "arms", len(self.means))

    @property
    def shared(self) -> bool:
        return self.means is not None


@dataclass(frozen=True)
class Bernoulli(BinaryArmEnvironment[Floats], GivenMeans[Floats]):
    """K arms with rewards 0 and 1; the success probability of each is drawn from Beta(α, β).

    K is ``arms``, α is ``alpha``, β is ``beta``. If ``means`` are given, they are the success
    probabilities in every replica, and nothing is drawn. The world is the table of success
    probabilities, ``[R, K]``.

    >>> Bernoulli.of([0.9, 0.8, 0.7]).arms
    3

    Reference: Xu et al. (2024), section 4.1.
    """

    arms: int = 0
    alpha: Positive = 1.0
    beta: Positive = 1.0
    means: tuple[float, ...] | None = None

    @classmethod
    def of(cls, means: Iterable[float]) -> Self:
        return cls(means=tuple(map(float, means)))

    def reset(self, replicas: int, rng: np.random.Generator) -> Floats:
        if self.means is not None:
            return np.tile(self.means, (replicas, 1))
        return rng.beta(self.alpha, self.beta, size=(replicas, self.arms))


@dataclass(frozen=True)
class Gaussian(WithNoise[Floats], GivenMeans[Floats]):
    """K arms with rewards μ_a + σ ε, ε ~ N(0, 1); the mean μ_a of each is drawn from N(0, τ²).

    K is ``arms``, τ is ``spread``, σ is ``noise``. If ``means`` are given, they are μ in every
    replica, and nothing is drawn. The world is the table of means, ``[R, K]``.

    >>> Gaussian.of([1.0, 0.0], noise=0.5).arms
    2
    """

    arms: int = 0
    spread: Positive = 1.0
    noise: NonNegative = 1.0
    means: tuple[float, ...] | None = None

    check_mean = staticmethod(finite)

    @classmethod
    def of(cls, means: Iterable[float], noise: float = 1.0) -> Self:
        return cls(noise=noise, means=tuple(map(float, means)))

    @property
    def problem(self) -> Problem:
        return Problem(Arms(self.arms), scale=Continuous())

    def reset(self, replicas: int, rng: np.random.Generator) -> Floats:
        if self.means is not None:
            return np.tile(self.means, (replicas, 1))
        return self.spread * rng.standard_normal((replicas, self.arms))


@dataclass(frozen=True)
class Poisson(DrawnFromMean[Floats], ArmEnvironment[Floats]):
    """K arms with rewards from Poisson(λ_a); the rate λ_a of each is drawn from Gamma(k, θ).

    K is ``arms``, k is ``shape``, θ = m / k with m the ``mean`` of the rates. The world is the
    table of rates, ``[R, K]``.
    """

    arms: Count
    shape: Positive = 2.0
    mean: Positive = 1.0

    @property
    def problem(self) -> Problem:
        return Problem(Arms(self.arms), scale=Counts())

    def reset(self, replicas: int, rng: np.random.Generator) -> Floats:
        return rng.gamma(self.shape, self.mean / self.shape, size=(replicas, self.arms))

    def draw(self, mean: Floats, rng: np.random.Generator) -> Floats:
        return rng.poisson(mean).astype(np.float64)


@dataclass(frozen=True)
class Ratings(ArmEnvironment[Floats]):
    """K arms whose reward is one of v₁ < … < v_V; P(v | a) is drawn from Dirichlet(κ, …, κ).

    K is ``arms``, v is ``values``, κ is ``concentration``: if κ is small, an arm gives mostly one
    value; if κ is large, all arms are alike. The world is the table of probabilities P(v | a),
    ``[R, K, V]``; the mean reward of an arm is Σ v P(v | a).
    """

    arms: Count
    values: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0, 5.0)
    concentration: Positive = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        Discrete(self.values)

    @property
    def problem(self) -> Problem:
        return Problem(Arms(self.arms), scale=Discrete(self.values))

    def reset(self, replicas: int, rng: np.random.Generator) -> Floats:
        prior = np.full(len(self.values), self.concentration)
        return rng.dirichlet(prior, size=(replicas, self.arms))

    def arm_means(self, world: Floats) -> Floats:
        return world @ np.array(self.values, dtype=np.float64)

    def outcome(
        self, world: Floats, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Outcome:
        probability: Floats = world[np.arange(len(world))[:, None], action[..., 0]]
        # The cumulative probabilities below the last value, by inversion of a uniform draw.
        below = np.cumsum(probability[..., :-1], axis=-1)
        index = (rng.random(probability.shape[:2])[..., None] >= below).sum(axis=-1)
        reward = np.array(self.values, dtype=np.float64)[index]
        return Outcome(reward, self.arm_means(probability))
