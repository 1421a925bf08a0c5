"""Arms whose rewards are ratings, such as one to five stars."""

from dataclasses import dataclass
from numbers import Real

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
    """K arms whose reward is one of v₁ < … < v_V; P(v | a) is drawn from Dirichlet(κ, …, κ).

    K is ``arms``, v is ``values``, κ is ``concentration``: if κ is small, an arm gives mostly one
    value; if κ is large, all arms are alike. The world is the table of probabilities P(v | a),
    ``[R, K, V]``; the mean reward of an arm is Σ v P(v | a).
    """

    arms: int
    values: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0, 5.0)
    concentration: float = 1.0

    def __post_init__(self) -> None:
        whole_number("arms", self.arms, at_least=1)
        if not isinstance(self.values, tuple) or not all(map(_is_number, self.values)):
            raise InputError(
                f"values must be a tuple of numbers, such as (1, 2, 3), not {self.values!r}",
                parameter="values",
            )
        Discrete(self.values)
        positive("concentration", self.concentration)

    @property
    def problem(self) -> Problem:
        return Problem(Arms(self.arms), scale=Discrete(self.values))

    def reset(self, replicas: int, rng: np.random.Generator) -> Floats:
        prior = np.full(len(self.values), self.concentration)
        return rng.dirichlet(prior, size=(replicas, self.arms))

    def arm_means(self, world: Floats) -> Floats:
        return self._mean(world)

    def outcome(
        self, world: Floats, context: Floats, action: Actions, rng: np.random.Generator
    ) -> Outcome:
        probability = _probabilities(world, action)
        # The cumulative probabilities below the last value, by inversion of a uniform draw.
        below = np.cumsum(probability[..., :-1], axis=-1)
        index = (rng.random(probability.shape[:2])[..., None] >= below).sum(axis=-1)
        return Outcome(np.array(self.values, dtype=np.float64)[index], self._mean(probability))

    def _mean(self, probability: Floats) -> Floats:
        mean: Floats = probability @ np.array(self.values, dtype=np.float64)
        return mean


def _probabilities(world: Floats, action: Actions) -> Floats:
    """P(v | a) for the chosen arms: ``[R, K, V]`` and ``[R, n, 1] -> [R, n, V]``."""
    probability: Floats = world[np.arange(len(world))[:, None], action[..., 0]]
    return probability


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)
