"""Base class of action spaces with real-valued parts."""

import math
from typing import NoReturn

import numpy as np

from submax.core.arrays import Actions, Floats, Integers
from submax.core.checks import finite
from submax.core.errors import InputError
from submax.core.spaces.space import Space

LARGEST_LOG_VOLUME = 500.0
"""Largest absolute logarithm of a volume; densities beyond it would not fit into a float64."""


class RealSpace(Space):
    """Choices, and numbers between ``low`` and ``high``; such actions cannot be listed."""

    low: tuple[float, ...]
    high: tuple[float, ...]

    @property
    def slots(self) -> int:
        return len(self.choices) + self.reals

    @property
    def reals(self) -> int:
        return len(self.low)

    @property
    def log_volume(self) -> float:
        """Logarithm of the volume of the real-valued parts."""
        return _log_volume(self.low, self.high)

    @property
    def log_measure(self) -> float:
        return self.log_volume + sum(map(math.log, self.choices))

    def uniform(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        choices = rng.integers(self.choices, size=(*shape, len(self.choices)))
        numbers = rng.uniform(self.low, self.high, size=(*shape, self.reals))
        return np.concatenate([choices, numbers], axis=-1)

    def scaled(self, action: Actions) -> Floats:
        low, high = np.array(self.low), np.array(self.high)
        scaled = np.array(action, dtype=np.float64)
        scaled[..., len(self.choices) :] -= low
        scaled[..., len(self.choices) :] /= high - low
        return scaled

    def unscaled(self, scaled: Floats) -> Floats:
        low, high = np.array(self.low), np.array(self.high)
        action = scaled.copy()
        numbers = low + scaled[..., len(self.choices) :] * (high - low)
        action[..., len(self.choices) :] = np.clip(numbers, low, high)
        return action

    def contains(self, action: Actions) -> bool:
        if action.shape[-1] != self.slots:
            return False
        choices, numbers = np.split(action, [len(self.choices)], axis=-1)
        chosen = (choices >= 0) & (choices < np.array(self.choices)) & (choices % 1 == 0)
        inside = (numbers >= np.array(self.low)) & (numbers <= np.array(self.high))
        return bool(chosen.all() and inside.all())

    @property
    def size(self) -> NoReturn:
        self._refuse()

    def index(self, action: Integers) -> NoReturn:
        self._refuse()

    def action(self, index: Integers) -> NoReturn:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise InputError(
            f"the actions of {self} cannot be listed or counted: use a space of arms or slots"
        )


def check_bounds(low: tuple[float, ...], high: tuple[float, ...]) -> None:
    """Raise an ``InputError`` unless ``low`` and ``high`` are finite tuples with low < high."""
    tuples = isinstance(low, tuple) and isinstance(high, tuple)
    if not (tuples and low and len(low) == len(high)):
        raise InputError(
            f"low and high must be tuples, one number for each dimension, not {low} and {high}",
            parameter="low",
        )
    for below, above in zip(low, high, strict=True):
        finite("each of low", below)
        finite("each of high", above)
        if not below < above:
            raise InputError(f"low must be below high, not {below} and {above}", parameter="low")
    if not abs(_log_volume(low, high)) <= LARGEST_LOG_VOLUME:
        raise InputError(
            f"the volume between low {low} and high {high} must lie between e^-500 and e^500: "
            "use other units",
            parameter="high",
        )


def _log_volume(low: tuple[float, ...], high: tuple[float, ...]) -> float:
    return sum(math.log(above - below) for below, above in zip(low, high, strict=True))
