"""Action spaces: plain arms, choices in slots, real numbers, and mixtures of them."""

import math
import operator
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NoReturn, TypeAlias

import numpy as np

from submax.core.arrays import Actions, Floats, Integers
from submax.core.checks import Checked, finite, whole_number
from submax.core.errors import InputError
from submax.core.serialization import serializable

Choices: TypeAlias = tuple[tuple[int, ...], ...]
"""For each slot, the indices of some of its choices, such as those that are eligible."""
MAX_ENUMERATED_ACTIONS = 2**20
"""Largest number of joint actions that are ever listed: a table of 2²⁰ floats takes 8 MB."""


LARGEST_INDEX = 2**62
"""Largest number of joint actions whose index is certain to fit into an int64."""


class Space(Checked, ABC):
    """A set of joint actions. An action has S parts, one for each slot.

    The last axis of an array of actions is S: first the choices, which are integers, then
    ``reals`` real numbers within bounds. Without real-valued parts actions are integer arrays, and
    every joint action has an index from 0 to ``size - 1``, in which the last slot is fastest. A
    `Box` raises an ``InputError`` in every method that needs such an index.
    """

    @property
    @abstractmethod
    def choices(self) -> tuple[int, ...]:
        """Number of choices in each slot that is not real-valued."""

    @property
    def reals(self) -> int:
        return 0

    @property
    def slots(self) -> int:
        """Number of parts of an action (S); a plain arm has one."""
        return len(self.choices) + self.reals

    @property
    def size(self) -> int:
        return math.prod(self.choices)

    @property
    def dtype(self) -> type[np.int64] | type[np.float64]:
        return np.float64 if self.reals else np.int64

    @property
    def log_measure(self) -> float:
        """Logarithm of the number or volume of joint actions: minus the log-density of uniform."""
        return math.log(self.size)

    def index(self, action: Integers) -> Integers:
        """Return the index of each joint action: ``[..., S] -> [...]``."""
        return action @ _strides(self.choices)

    def action(self, index: Integers) -> Integers:
        """Return the joint action with each index: ``[...] -> [..., S]``."""
        return index[..., None] // _strides(self.choices) % np.array(self.choices, dtype=np.int64)

    def contains(self, action: Actions) -> bool:
        """Return whether all actions of the array belong to the space."""
        if action.shape[-1] != self.slots:
            return False
        return bool(np.all((action >= 0) & (action < np.array(self.choices))))

    def uniform(self, shape: tuple[int, ...], rng: np.random.Generator) -> Actions:
        """Draw actions from the uniform distribution: ``[*shape, S]``."""
        if self.size <= LARGEST_INDEX:
            return self.action(rng.integers(self.size, size=shape))
        return rng.integers(self.choices, size=(*shape, self.slots))

    def scaled(self, action: Actions) -> Actions:
        """Return actions with their real-valued parts scaled to the range from 0 to 1."""
        return action

    def unscaled(self, scaled: Actions) -> Actions:
        """Return actions from scaled ones: the inverse of ``scaled``."""
        return scaled

    def listing(self) -> Integers:
        """Return all joint actions in the order of their indices, ``[size, S]``."""
        return self.action(np.arange(self.size, dtype=np.int64))

    def restricted(self, choices: Choices) -> "Space":
        """Return the space that has only these choices in each slot, in this order."""
        raise InputError(f"the choices of {self} cannot be restricted: use Arms or Slots")

    def indices_of(self, choices: Choices) -> Integers:
        """Return the index of every joint action of ``restricted(choices)``, ``[size of that]``."""
        grid = np.meshgrid(*(np.asarray(slot, dtype=np.int64) for slot in choices), indexing="ij")
        return self.index(np.stack(grid, axis=-1)).ravel()

    def kept_choices(self, choices: Choices) -> Integers:
        """Return the indices of these choices among the choices of all slots together."""
        first = np.cumsum([0, *self.choices[:-1]])
        kept = [start + np.asarray(slot) for start, slot in zip(first, choices, strict=True)]
        return np.concatenate(kept)

    @property
    def is_listable(self) -> bool:
        """Whether the joint actions can be listed."""
        return not self.reals and self.size <= MAX_ENUMERATED_ACTIONS

    def check_listable(self, who: str, instead: str = "") -> None:
        """Raise an ``InputError`` if the joint actions of this space cannot be listed.

        The message names ``who`` needs the list, and ends with the advice ``instead``.
        """
        if not self.is_listable:
            size = "real-valued ones" if self.reals else str(self.size)
            advice = f": {instead}" if instead else ""
            raise InputError(
                f"{who} needs a number for every joint action and allows at most "
                f"{MAX_ENUMERATED_ACTIONS}, but {self} has {size}{advice}"
            )


def _strides(sizes: tuple[int, ...]) -> Integers:
    return np.array([math.prod(sizes[slot + 1 :]) for slot in range(len(sizes))], dtype=np.int64)


@serializable("arms")
@dataclass(frozen=True)
class Arms(Space):
    """One choice among ``count`` arms.

    >>> Arms(3).size, Arms(3).slots
    (3, 1)
    """

    count: int

    def __post_init__(self) -> None:
        whole_number("arms", self.count, at_least=1)

    @property
    def choices(self) -> tuple[int, ...]:
        return (self.count,)

    @property
    def size(self) -> int:
        return self.count

    slots = 1

    def index(self, action: Integers) -> Integers:
        return action[..., 0]

    def action(self, index: Integers) -> Integers:
        return index[..., None]

    def restricted(self, choices: Choices) -> "Arms":
        return Arms(len(choices[0]))

    def contains(self, action: Integers) -> bool:
        # As for other spaces, in half of the time.
        inside = action.min(initial=0) >= 0 and action.max(initial=0) < self.count
        return action.shape[-1] == 1 and bool(inside)


@serializable("slots")
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
    def choices(self) -> tuple[int, ...]:
        return self.sizes

    def restricted(self, choices: Choices) -> "Slots":
        return Slots(tuple(len(slot) for slot in choices))


LARGEST_LOG_VOLUME = 500.0
"""Largest absolute logarithm of a volume; densities beyond it would not fit into a float64."""


@serializable("box")
@dataclass(frozen=True)
class Box(Space):
    """Numbers between ``low`` and ``high``, behind one of ``sizes[s]`` choices in each slot s.

    Such actions cannot be listed.

    >>> Box((0.0,), (10.0,)).slots, Box((0.0,), (1.0,), sizes=(3, 2)).slots
    (1, 3)
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    sizes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.sizes != ():
            Slots(self.sizes)
        low, high = self.low, self.high
        tuples = isinstance(low, tuple) and isinstance(high, tuple)
        for bound in (*low, *high) if tuples else ():
            finite("each of low and high", bound)
        if not (tuples and low and len(low) == len(high) and all(map(operator.lt, low, high))):
            raise InputError(
                "low and high must be tuples of a number for each dimension, low below high, not "
                f"{low} and {high}",
                parameter="low",
            )
        if not abs(self.log_volume) <= LARGEST_LOG_VOLUME:
            raise InputError(
                f"the volume between low {low} and high {high} must lie between e^-500 and e^500: "
                "use other units",
                parameter="high",
            )

    @property
    def choices(self) -> tuple[int, ...]:
        return self.sizes

    @property
    def reals(self) -> int:
        return len(self.low)

    @property
    def log_volume(self) -> float:
        """Logarithm of the volume of the real-valued parts."""
        return sum(math.log(above - low) for low, above in zip(self.low, self.high, strict=True))

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
        raise self._unlisted

    def index(self, action: Integers) -> NoReturn:
        raise self._unlisted

    def action(self, index: Integers) -> NoReturn:
        raise self._unlisted

    @property
    def _unlisted(self) -> InputError:
        return InputError(
            f"the actions of {self} cannot be listed or counted: use a space of arms or slots"
        )
