"""Arms that are rated."""

from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Real
from typing import Self

import numpy as np

from submax.core.arrays import Actions, Floats
from submax.core.checks import positive, whole_number
from submax.core.contracts.environment import Outcome
from submax.core.contracts.problem import Problem
from submax.core.errors import InputError
from submax.core.rewards.discrete import Discrete
from submax.core.spaces.arms import Arms
from submax.environments.arms.arm_environment import ArmEnvironment


@dataclass(frozen=True)
class Ratings(ArmEnvironment[Floats]):
    """K arms that pay one of the values v₁ < … < v_V; P(v | a) is drawn from Dirichlet(κ, …, κ).

    K is ``arms``, v is ``values``, κ is ``concentration``: small where an arm earns mostly one
    value, large where all arms are alike. The world is the table of chances, ``[R, K, V]``; the
    mean of an arm is Σ v P(v | a).
    """

    arms: int
    values: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0, 5.0)
    concentration: float = 1.0

    def __post_init__(self) -> None:
        whole_number("arms", self.arms, at_least=1)
        if not isinstance(self.values, tuple) or not all(map(_is_number, self.values)):
            raise InputError(f"values must be a tuple of numbers, not {self.values!r}")
        Discrete(self.values)
        positive("concentration", self.concentration)

    @property
    def problem(self) -> Problem:
        """Plain arms, no context, the values as rewards."""
        return Problem(Arms(self.arms), scale=Discrete(self.values))

    def reset(self, replicas: int, rng: np.random.Generator) -> Floats:
        """Draw the chance of every value for every arm."""
        prior = np.full(len(self.values), self.concentration)
        return rng.dirichlet(prior, size=(replicas, self.arms))

    def means(self, world: Floats) -> Floats:
        """Σ v P(v | a)."""
        return self._mean(world)

    def outcome(
        self, world: Floats, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Outcome:
        """Look the chances up once for both."""
        chance = _chances(world, action)
        below = np.cumsum(chance[..., :-1], axis=-1)
        place = (rng.random(chance.shape[:2])[..., None] >= below).sum(axis=-1)
        return Outcome(np.array(self.values, dtype=np.float64)[place], self._mean(chance))

    def _mean(self, chance: Floats) -> Floats:
        mean: Floats = chance @ np.array(self.values, dtype=np.float64)
        return mean

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Stars, values at unequal distances, and two of them."""
        yield cls(4)
        yield cls(3, values=(-2.0, 0.0, 0.5, 10.0), concentration=0.2)
        yield cls(1, values=(0.0, 1.0))


def _chances(world: Floats, action: Actions) -> Floats:
    """The chances of the arm's values: ``[R, K, V]`` and ``[R, n, 1] -> [R, n, V]``."""
    chance: Floats = world[np.arange(len(world))[:, None], action[..., 0]]
    return chance


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
