"""Draws one action from a list of probabilities."""

from bisect import bisect_right
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats
from submax.schema.menu import ChoiceIndices, EncodedAction

MAX_LOGGED_PROBABILITIES = 256
"""With more joint actions, a decision is logged without the probabilities of all of them: they
would make up most of the log."""


class DrawnAction(NamedTuple):
    """An action that was drawn and its probability.

    ``probabilities`` are those of all eligible joint actions; None if there are too many to log.
    """

    row: EncodedAction
    propensity: float
    probabilities: list[float] | None


class ActionSampler:
    """Draws joint actions of the eligible choices with given ``probabilities [M]``.

    The joint actions are listed so that the choice of the last slot changes first.
    """

    def __init__(self, probabilities: Floats, eligible: ChoiceIndices) -> None:
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
        index = bisect_right(self._cumulated, rng.random() * self._cumulated[-1])
        return DrawnAction(
            joint_action(index, self._eligible), float(self._probabilities[index]), self._logged
        )

    def draw_many(self, count: int, rng: np.random.Generator) -> list[DrawnAction]:
        """Draw several times, independently."""
        points = (rng.random(count) * self._cumulated[-1]).tolist()
        return [
            DrawnAction(
                joint_action(index, self._eligible), float(self._probabilities[index]), self._logged
            )
            for index in (bisect_right(self._cumulated, point) for point in points)
        ]


def draw_rows(
    probabilities: Floats, eligible: ChoiceIndices, rng: np.random.Generator
) -> list[DrawnAction]:
    """Draw one joint action for each row of ``probabilities [n, M]``."""
    count, size = probabilities.shape
    cumulated = np.cumsum(probabilities, axis=1)
    points = rng.random(count) * cumulated[:, -1]
    index = np.add.reduce(cumulated <= points[:, None], axis=1, dtype=np.int64)
    propensities = probabilities[np.arange(count), index].tolist()
    logged: list[list[float]] | list[None] = (
        probabilities.tolist() if size <= MAX_LOGGED_PROBABILITIES else [None] * count
    )
    return [
        DrawnAction(joint_action(place, eligible), propensity, row)
        for place, propensity, row in zip(index.tolist(), propensities, logged, strict=True)
    ]


def joint_action(index: int, eligible: ChoiceIndices) -> EncodedAction:
    """Return the joint action at an index of the list."""
    action: EncodedAction = []
    for indices in reversed(eligible):
        index, place = divmod(index, len(indices))
        action.append(indices[place])
    return action[::-1]
