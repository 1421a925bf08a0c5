"""Delays with a geometric distribution."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.checks import non_negative
from submax.simulation.random_delays.random_delay import RandomDelay


@dataclass(frozen=True)
class Geometric(RandomDelay):
    """A pending reward comes back after each further decision with the same probability.

    P(delay = d) = p (1 − p)^d with p = 1 / (1 + m): the delay has no memory and the mean m.
    m is ``mean``, or, if ``means`` are given, that of the action that was taken. With probability
    ``missing`` the reward never comes back.
    """

    mean: float = 10.0
    means: tuple[float, ...] | None = None
    missing: float = 0.0

    def __post_init__(self) -> None:
        self.check_random()

    def draw(self, mean: Floats, rng: np.random.Generator) -> Integers:
        return rng.geometric(1 / (1 + mean)) - 1

    def _check_mean(self, name: str, value: object) -> None:
        non_negative(name, value)
