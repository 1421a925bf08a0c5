"""Draws of one action from listed probabilities."""

from bisect import bisect_right
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats
from submax.schema.menu import Row, Shown

KEPT = 256
"""Up to so many probabilities are kept with a decision."""


class Drawn(NamedTuple):
    """An action, its probability, and the probabilities it was drawn from, where kept."""

    row: Row
    propensity: float
    probabilities: list[float] | None


class Lottery:
    """Probabilities ``[M]`` of the joint actions of choices, the last slot fastest."""

    def __init__(self, probabilities: Floats, shown: Shown) -> None:
        self._shown = shown
        self._kept = probabilities.tolist() if len(probabilities) <= KEPT else None
        # Few numbers are faster in Python than in numpy.
        self._probabilities: list[float] | Floats = self._kept or probabilities
        self._cumulated: list[float] | Floats = (
            list(accumulate(self._kept)) if self._kept else np.cumsum(probabilities)
        )

    def draw(self, rng: np.random.Generator) -> Drawn:
        """Inversion: the first action whose cumulated probability exceeds a uniform number."""
        number = bisect_right(self._cumulated, rng.random() * self._cumulated[-1])
        return Drawn(row_of(number, self._shown), float(self._probabilities[number]), self._kept)


def row_of(number: int, shown: Shown) -> Row:
    """The choices of a joint action by its place in the list."""
    row: Row = []
    for numbers in reversed(shown):
        number, place = divmod(number, len(numbers))
        row.append(numbers[place])
    return row[::-1]
