"""Thompson sampling with Beta posteriors, one decision at a time."""

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.policy import Stepper, SuccessDraws
from submax.core.problem import Problem
from submax.core.rewards import Binary
from submax.policies.steppers.arm_counter import ArmCounter

FRACTION = 2.0**20
"""Multiples of 1 / FRACTION are added without rounding errors up to 2³³."""


class ThompsonStepper(Stepper):
    """The posteriors Beta(a, b) of all arms; only those of the arms just taken are computed.

    A Beta variable is x / (x + y) with Gamma variables x and y, and numpy draws it so unless both
    parameters are at most 1. The parameters of an arm are neighbours in memory, so that one call
    draws all x and y in the order in which numpy would draw them, without its checks of both.
    """

    def __init__(self, problem: Problem, replicas: int, alpha: float, beta: float) -> None:
        self._lowest, highest = problem.scale.known_bounds("Thompson sampling")
        self._span = highest - self._lowest
        self._scaled = (self._lowest, highest) != (0.0, 1.0)
        self._prior = alpha, beta
        # If rewards are 0 and 1, parameters can be counted up, if no rounding error can add up.
        whole = all((one * FRACTION).is_integer() for one in (alpha, beta))
        self._counted = problem.scale == Binary() and whole
        self._counter = ArmCounter(problem, replicas)
        actions = problem.space.size
        self._parameters = np.tile(np.array([alpha, beta]), (replicas, actions, 1))
        self._a, self._b = self._parameters[..., 0], self._parameters[..., 1]
        self._flat = self._parameters.reshape(-1)
        self._gammas = np.empty(self._parameters.shape)
        self._x, self._y = self._gammas[..., 0], self._gammas[..., 1]
        self._shares = np.empty(self._x.shape)
        self._first: Integers = np.arange(replicas, dtype=np.int64) * (2 * actions)
        self._any_small = True

    def act(self, rng: np.random.Generator) -> Integers:
        if self._any_small:
            self._any_small = bool(((self._a <= 1.0) & (self._b <= 1.0)).any())
        if self._any_small:
            plain: Integers = rng.beta(self._a, self._b).argmax(axis=-1)
            return plain
        drawn: Integers = self._draw(rng).argmax(axis=-1)
        return drawn

    def _draw(self, rng: np.random.Generator) -> Floats:
        """Draw from the posterior of every arm, if no two parameters are small, ``[R, M]``."""
        rng.standard_gamma(self._parameters, out=self._gammas)
        np.add(self._x, self._y, out=self._shares)
        return np.divide(self._x, self._shares, out=self._shares)

    def take(self, draws: SuccessDraws, rng: np.random.Generator) -> tuple[Integers, Floats]:
        if self._any_small or not self._counted:
            return super().take(draws, rng)
        # The same steps as in ``act`` and ``learn``, with arrays that are made once.
        index, lost = np.empty(draws.shape, dtype=np.int64), np.empty(draws.shape, dtype=bool)
        place, chances = np.empty_like(draws.first), np.empty(len(draws.first))
        for chosen, uniform, failed in zip(index, draws.uniform, lost, strict=True):
            self._draw(rng).argmax(axis=-1, out=chosen)
            np.add(draws.first, chosen, out=place)
            draws.table.take(place, out=chances, mode="clip")
            np.greater_equal(uniform, chances, out=failed)
            np.add(place, place, out=place)
            np.add(place, failed, out=place)
            self._flat[place] += 1.0
        return index, 1.0 - lost

    def learn(self, index: Integers, reward: Floats, rng: np.random.Generator) -> None:
        if self._counted:
            place = index * 2
            place += self._first
            # A failure counts for b, which is the next number.
            place += reward < 1.0
            self._flat[place] += 1.0
            return
        place = self._counter.add(index, reward)
        pulls, successes = self._counter.pulls.take(place), self._counter.rewards.take(place)
        if self._scaled:
            successes = (successes - self._lowest * pulls) / self._span
        alpha, beta = self._prior
        self._flat[2 * place] = alpha + successes
        self._flat[2 * place + 1] = beta + pulls - successes
