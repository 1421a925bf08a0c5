"""Delays with a heavy tail."""

from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.checks import non_negative, positive
from submax.core.errors import InputError
from submax.simulation.random_delays.random_delay import NEVER, RandomDelay


@dataclass(frozen=True)
class Pareto(RandomDelay):
    """Most rewards come back soon and a few very late: P(delay > x) = (1 + x / s)^−α.

    This is the Lomax distribution, rounded down, with α = ``shape`` above 1 and the scale
    s = m (α − 1), so that its mean before rounding is m. For α up to 2 the variance is infinite. m
    is ``mean``, or the number of the action in ``means``. With probability ``missing`` the reward
    never comes back.
    """

    mean: float = 10.0
    means: tuple[float, ...] | None = None
    missing: float = 0.0
    shape: float = 1.5

    def __post_init__(self) -> None:
        self.check_random()
        positive("shape", self.shape)
        if self.shape <= 1:
            raise InputError(
                f"shape must be above 1, so that the mean delay exists, not {self.shape}: take a "
                "larger number, such as 1.5",
                parameter="shape",
            )

    def draw(self, mean: Floats, rng: np.random.Generator) -> Integers:
        drawn = mean * (self.shape - 1) * rng.pareto(self.shape, mean.shape)
        return np.minimum(drawn, NEVER).astype(np.int64)

    def _check_mean(self, name: str, value: object) -> None:
        non_negative(name, value)
