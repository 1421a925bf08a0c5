"""What spaces with real-valued parts have in common."""

import math
from abc import abstractmethod
from typing import NoReturn

import numpy as np

from submax.core.arrays import Actions, Floats, Integers
from submax.core.errors import InvalidValue
from submax.core.space import Space


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
    def log_measure(self) -> float:
        """Logarithm of the volume, times the number of joint choices."""
        widths = (high - low for low, high in zip(self.low, self.high, strict=True))
        return sum(map(math.log, widths)) + sum(map(math.log, self.choices))

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
        raise InvalidValue(f"the actions of {self} cannot be listed or counted")


def check_bounds(low: tuple[float, ...], high: tuple[float, ...]) -> None:
    """Refuse bounds that are missing, not finite or the wrong way round."""
    if not low or len(low) != len(high):
        raise InvalidValue(f"low and high must name the same dimensions, not {low} and {high}")
    for below, above in zip(low, high, strict=True):
        if not (math.isfinite(below) and math.isfinite(above) and below < above):
            raise InvalidValue(f"bounds must be finite and low below high, not {below} and {above}")
