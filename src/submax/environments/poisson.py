"""Arms that pay counts."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from submax.core.arms import Arms
from submax.core.arrays import Actions, Floats
from submax.core.checks import positive, whole_number
from submax.core.counts import Counts
from submax.core.environment import Environment, Outcome
from submax.core.problem import Problem


@dataclass(frozen=True)
class Poisson(Environment[Floats]):
    """K arms that pay a count from Poisson(λ_a); the rate λ_a of each is drawn from Gamma(k, θ).

    K is ``arms``, k is ``shape``, θ = m / k with m the ``mean`` of the rates. The world is the
    table of rates, ``[R, K]``.
    """

    arms: int
    shape: float = 2.0
    mean: float = 1.0

    def __post_init__(self) -> None:
        whole_number("arms", self.arms, at_least=1)
        positive("shape", self.shape)
        positive("mean", self.mean)

    @property
    def problem(self) -> Problem:
        """Plain arms, no context, counts as rewards."""
        return Problem(Arms(self.arms), scale=Counts())

    def reset(self, replicas: int, rng: np.random.Generator) -> Floats:
        """Draw the rate of every arm."""
        return rng.gamma(self.shape, self.mean / self.shape, size=(replicas, self.arms))

    def contexts(self, world: Floats, count: int, rng: np.random.Generator) -> Floats:
        """Contexts of width 0."""
        return np.zeros((len(world), count, 0))

    def mean_reward(self, world: Floats, context: Floats, action: Actions) -> Floats:
        """The rate of the arm."""
        return np.take_along_axis(world, action[..., 0], axis=1)

    def reward(
        self, world: Floats, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Floats:
        """Draw a count."""
        return self.outcome(world, context, action, rng).reward

    def outcome(
        self, world: Floats, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Outcome:
        """Look the rate up once for both."""
        rate = self.mean_reward(world, context, action)
        return Outcome(rng.poisson(rate).astype(np.float64), rate)

    def best_reward(self, world: Floats, context: Floats) -> Floats:
        """The highest rate, the same in every row."""
        return np.broadcast_to(world.max(axis=-1)[:, None], context.shape[:2])

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """The default, and high counts of arms that are nearly alike."""
        yield cls(4)
        yield cls(3, shape=20.0, mean=50.0)
