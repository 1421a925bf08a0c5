"""The action space of one choice in each of several slots."""

import math
from dataclasses import dataclass

import numpy as np

from submax.core.arrays import Integers
from submax.core.checks import whole_number
from submax.core.errors import InputError
from submax.core.running.stored import stored
from submax.core.spaces.space import Choices, Space


@stored("slots")
@dataclass(frozen=True)
class Slots(Space):
    """One of ``sizes[s]`` choices in each slot s; in an action's index the last slot is fastest.

    >>> space = Slots((2, 3))
    >>> space.size
    6
    >>> space.action(np.array([0, 1, 5])).tolist()
    [[0, 0], [0, 1], [1, 2]]
    """

    sizes: tuple[int, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.sizes, tuple) or not self.sizes:
            raise InputError(
                f"sizes must be a tuple with at least one slot, not {self.sizes!r}",
                parameter="sizes",
            )
        for size in self.sizes:
            whole_number("the number of choices in a slot", size, at_least=1)

    @property
    def slots(self) -> int:
        return len(self.sizes)

    @property
    def choices(self) -> tuple[int, ...]:
        return self.sizes

    @property
    def size(self) -> int:
        return math.prod(self.sizes)

    def index(self, action: Integers) -> Integers:
        return action @ self._strides()

    def action(self, index: Integers) -> Integers:
        return index[..., None] // self._strides() % np.array(self.sizes, dtype=np.int64)

    def restricted(self, choices: Choices) -> "Slots":
        return Slots(tuple(len(slot) for slot in choices))

    def contains(self, action: Integers) -> bool:
        if action.shape[-1] != self.slots:
            return False
        return bool(np.all((action >= 0) & (action < np.array(self.sizes))))

    def _strides(self) -> Integers:
        strides = [math.prod(self.sizes[slot + 1 :]) for slot in range(self.slots)]
        return np.array(strides, dtype=np.int64)
