"""Policies whose probabilities follow from the statistics of the arms, one decision at a time."""

from collections.abc import Callable

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.numerics import draw
from submax.core.policy import Stepper
from submax.core.problem import Problem
from submax.policies.arm_statistics import ArmStatistics
from submax.policies.steppers.arm_counter import ArmCounter


class ListedStepper(Stepper):
    """Draws from ``probabilities(statistics)``, which returns ``[R, 1, M]``.

    ``after_learning(rng)`` draws the random numbers that ``update`` of the policy draws.
    """

    def __init__(
        self,
        problem: Problem,
        replicas: int,
        probabilities: Callable[[ArmStatistics], Floats],
        after_learning: Callable[[np.random.Generator], object] | None = None,
    ) -> None:
        self._counter = ArmCounter(problem, replicas)
        self._probabilities = probabilities
        self._after_learning = after_learning

    def act(self, rng: np.random.Generator) -> Integers:
        return draw(self._probabilities(self._counter.statistics), 1, rng)[:, 0]

    def learn(self, index: Integers, reward: Floats, rng: np.random.Generator) -> None:
        self._counter.add(index, reward)
        if self._after_learning is not None:
            self._after_learning(rng)
