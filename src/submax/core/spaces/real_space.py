"""What spaces with real-valued parts have in common."""

import math
from abc import abstractmethod
from typing import NoReturn

import numpy as np

from submax.core.arrays import Actions, Floats, Integers
from submax.core.checks import finite
from submax.core.errors import InputError
from submax.core.spaces.space import Space

LARGEST_LOG_VOLUME = 500.0
"""Beyond this, densities leave the range of numbers."""


class RealSpace(Space):
    """Choices, and numbers between ``low`` and ``high``; nothing here can be listed."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    @property
    @abstractmethod
    def choices(self) -> tuple[int, ...]:
        """The number of choices in each slot that is not real-valued."""

    @property
    def slots(self) -> int:
        """Choices and numbers."""
        return len(self.choices) + self.reals

    @property
    def reals(self) -> int:
        """The dimensions of the box."""
        return len(self.low)

    @property
    def log_volume(self) -> float:
        """Logarithm of the volume of the box."""
        return _log_volume(self.low, self.high)

    @property
    def log_measure(self) -> float:
        """Logarithm of the volume, times the number of joint choices."""
        return self.log_volume + sum(map(math.log, self.choices))

    def uniform(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Independent in every part."""
        choices = rng.integers(self.choices, size=(*shape, len(self.choices)))
        numbers = rng.uniform(self.low, self.high, size=(*shape, self.reals))
        return np.concatenate([choices, numbers], axis=-1)

    def scaled(self, action: Actions) -> Floats:
        """The numbers from 0 at their lowest to 1 at their highest."""
        low, high = np.array(self.low), np.array(self.high)
        scaled = np.array(action, dtype=np.float64)
        scaled[..., len(self.choices) :] -= low
        scaled[..., len(self.choices) :] /= high - low
        return scaled

    def unscaled(self, scaled: Floats) -> Floats:
        """The reverse."""
        low, high = np.array(self.low), np.array(self.high)
        action = scaled.copy()
        numbers = low + scaled[..., len(self.choices) :] * (high - low)
        action[..., len(self.choices) :] = np.clip(numbers, low, high)
        return action

    def contains(self, action: Actions) -> bool:
        """Whether every choice and every number is within its bounds."""
        if action.shape[-1] != self.slots:
            return False
        choices, numbers = np.split(action, [len(self.choices)], axis=-1)
        chosen = (choices >= 0) & (choices < np.array(self.choices)) & (choices % 1 == 0)
        inside = (numbers >= np.array(self.low)) & (numbers <= np.array(self.high))
        return bool(chosen.all() and inside.all())

    @property
    def size(self) -> NoReturn:
        """There is no number of actions."""
        self._refuse()

    def index(self, action: Integers) -> NoReturn:
        """No action has a number."""
        self._refuse()

    def action(self, index: Integers) -> NoReturn:
        """No action has a number."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise InputError(f"the actions of {self} cannot be listed or counted")


def check_bounds(low: tuple[float, ...], high: tuple[float, ...]) -> None:
    """Refuse bounds that are missing, not finite or the wrong way round."""
    tuples = isinstance(low, tuple) and isinstance(high, tuple)
    if not (tuples and low and len(low) == len(high)):
        raise InputError(
            f"low and high must be tuples, one number for each dimension, not {low} and {high}"
        )
    for below, above in zip(low, high, strict=True):
        finite("each of low", below)
        finite("each of high", above)
        if not below < above:
            raise InputError(f"low must be below high, not {below} and {above}")
    if not abs(_log_volume(low, high)) <= LARGEST_LOG_VOLUME:
        raise InputError(
            f"the volume between {low} and {high} cannot be computed with: take other units"
        )


def _log_volume(low: tuple[float, ...], high: tuple[float, ...]) -> float:
    return sum(math.log(above - below) for below, above in zip(low, high, strict=True))
