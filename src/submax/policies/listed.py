"""Draws from actions that are listed, and rows in parts, so that lists stay small."""

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.contracts.chosen_actions import ChosenActions
from submax.core.numerics.categorical import draw, log_prob_of
from submax.core.spaces.space import Space

Draw: TypeAlias = Callable[[Floats, int, np.random.Generator], Integers]


def drawn_listed(
    space: Space, probabilities: Floats, rows: int, rng: np.random.Generator, how: Draw = draw
) -> ChosenActions:
    """Draw so many rows, and say with which probability."""
    index = how(probabilities, rows, rng)
    return ChosenActions(space.action(index), log_prob_of(probabilities, index))


def drawn_one(space: Space, probabilities: Floats, rng: np.random.Generator) -> ChosenActions:
    """The same for one decision, in fewer steps: ``probabilities [M]``."""
    cumulated = probabilities.cumsum()
    index = int(cumulated.searchsorted(rng.random() * cumulated[-1], "right"))
    log_prob = math.log(probabilities.item(index))
    return ChosenActions(space.action(np.array([[index]])), np.array([[log_prob]]))


def split(values: Any, rows: int) -> list[Any]:
    """Arrays ``[R, n, ...]`` in parts of so many rows; one part without rows where n is 0."""
    return [values[:, begin : begin + rows] for begin in range(0, values.shape[1] or 1, rows)]


def joined(parts: Sequence[Any]) -> Any:
    """The parts of ``split``, or what was made of them, one behind the other."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
