"""Draw one action from a list of probabilities."""

from bisect import bisect_right
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats
from submax.schema.menu import Row, Shown

MAX_LOGGED_PROBABILITIES = 256
"""With more joint actions, a decision is logged without the probabilities of all of them: they
would make up most of the log."""


class DrawnAction(NamedTuple):
    """An action that was drawn and its probability.

    ``probabilities`` are those of all eligible joint actions; None if there are too many to log.
    """

    row: Row
    propensity: float
    probabilities: list[float] | None


class Lottery:
    """Probabilities ``[M]`` of the joint actions of the eligible choices, the last slot fastest."""

    def __init__(self, probabilities: Floats, eligible: Shown) -> None:
        self._eligible = eligible
        self._logged = (
            probabilities.tolist() if len(probabilities) <= MAX_LOGGED_PROBABILITIES else None
        )
        # For few numbers Python lists are faster than numpy.
        self._probabilities: list[float] | Floats = self._logged or probabilities
        self._cumulated: list[float] | Floats = (
            list(accumulate(self._logged)) if self._logged else np.cumsum(probabilities)
        )

    def draw(self, rng: np.random.Generator) -> DrawnAction:
        """Draw by inversion: the first action whose cumulative probability exceeds U(0, 1)."""
        number = bisect_right(self._cumulated, rng.random() * self._cumulated[-1])
        return DrawnAction(
            row_of(number, self._eligible), float(self._probabilities[number]), self._logged
        )


def row_of(number: int, eligible: Shown) -> Row:
    """The choices of the joint action at a place in the list."""
    row: Row = []
    for numbers in reversed(eligible):
        number, place = divmod(number, len(numbers))
        row.append(numbers[place])
    return row[::-1]
