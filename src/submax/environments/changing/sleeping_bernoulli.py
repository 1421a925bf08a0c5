"""Bernoulli arms of which only some are eligible in each decision."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats
from submax.core.checks import positive, probability
from submax.core.errors import InputError
from submax.core.spaces.space import Choices
from submax.environments.arms.binary_arm_environment import BinaryArmEnvironment
from submax.environments.arms.given_means import count_arms


class SleepingWorld(NamedTuple):
    """The success probabilities, ``[R, K]``, and the number of decisions so far."""

    probability: Floats
    decisions: int


@dataclass(frozen=True)
class SleepingBernoulli(BinaryArmEnvironment[SleepingWorld]):
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
    alpha: float = 1.0
    beta: float = 1.0
    means: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        arms = count_arms(self, self.arms, self.means, probability)
        object.__setattr__(self, "arms", arms)
        object.__setattr__(self, "sets", tuple(tuple(one) for one in self.sets))
        positive("alpha", self.alpha)
        positive("beta", self.beta)
        known = set(range(arms))
        if not self.sets or not all(one and set(one) <= known for one in self.sets):
            raise InputError(
                f"sets must be one or more sets of arms from 0 to {arms - 1}, none of them empty, "
                f"not {self.sets!r:.80}",
                parameter="sets",
            )

    @property
    def shared(self) -> bool:
        return self.means is not None

    def eligible(self, number: int) -> Choices:
        return (self.sets[number % len(self.sets)],)

    def reset(self, replicas: int, rng: np.random.Generator) -> SleepingWorld:
        if self.means is not None:
            return SleepingWorld(np.tile(self.means, (replicas, 1)), 0)
        return SleepingWorld(rng.beta(self.alpha, self.beta, size=(replicas, self.arms)), 0)

    def advance(self, world: SleepingWorld, count: int, rng: np.random.Generator) -> SleepingWorld:
        return world._replace(decisions=world.decisions + count)

    def arm_means(self, world: SleepingWorld) -> Floats:
        return world.probability

    def best_reward(self, world: SleepingWorld, context: Floats) -> Floats:
        numbers = range(world.decisions, world.decisions + context.shape[1])
        best = [world.probability[:, self.eligible(one)[0]].max(axis=1) for one in numbers]
        return np.stack(best, axis=1) if best else np.zeros(context.shape[:2])
