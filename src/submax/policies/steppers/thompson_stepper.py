"""Thompson sampling with Beta posteriors, one decision at a time."""

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.contracts.problem import Problem
from submax.core.contracts.stepper import Stepper
from submax.policies.steppers.arm_counter import ArmCounter


class ThompsonStepper(Stepper):
    """The posteriors Beta(a, b) of all arms; only those of the arms just taken are computed."""

    def __init__(self, problem: Problem, replicas: int, alpha: float, beta: float) -> None:
        self._lowest, highest = problem.scale.known_bounds("Thompson sampling")
        self._span = highest - self._lowest
        self._scaled = (self._lowest, highest) != (0.0, 1.0)
        self._prior = alpha, beta
        self._counter = ArmCounter(problem, replicas)
        shape = self._counter.statistics.pulls.shape
        self._a, self._b = np.full(shape, alpha), np.full(shape, beta)

    def act(self, rng: np.random.Generator) -> Integers:
        drawn: Integers = rng.beta(self._a, self._b).argmax(axis=-1)
        return drawn

    def learn(self, index: Integers, reward: Floats, rng: np.random.Generator) -> None:
        place = self._counter.add(index, reward)
        pulls, successes = self._counter.pulls.take(place), self._counter.rewards.take(place)
        if self._scaled:
            successes = (successes - self._lowest * pulls) / self._span
        alpha, beta = self._prior
        self._a.put(place, alpha + successes)
        self._b.put(place, beta + pulls - successes)
