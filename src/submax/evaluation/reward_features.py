"""What a model of the rewards sees of a context."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats
from submax.evaluation.log import Log
from submax.evaluation.propensity_model import with_constant
from submax.evaluation.ridge_design import MOST_NUMBERS, MOST_UNKNOWNS
from submax.schema.standardization import Standardization

WAVES, FEWEST_WAVES = 128, 8
ROWS_PER_WAVE = 5
"""Rows of each choice that there must be for a wave."""


class RewardFeatures(NamedTuple):
    """1, the standardized context x, and waves √2 cos(w · x + b) with w ~ N(0, I / D).

    Regression on many such waves is one with a Gaussian kernel, so that what is not linear in the
    context is learned too. ``directions [D, R]`` are the w, ``phases [R]`` the b; they are always
    the same for as many of them.

    Reference: Rahimi and Recht (2007), Random features for large-scale kernel machines.
    """

    standardization: Standardization
    directions: Floats
    phases: Floats

    @classmethod
    def of(cls, log: Log) -> "RewardFeatures":
        """As many waves as the rows are enough for."""
        width, rng = log.schema.context.width, np.random.default_rng(0)
        count = _waves(log) if width else 0
        directions = rng.normal(size=(width, count)) / math.sqrt(max(width, 1))
        standardization = Standardization.of(log.parts, log.schema.context.numeric)
        return cls(standardization, directions, rng.uniform(0, 2 * np.pi, count))

    @property
    def width(self) -> int:
        """How many features there are."""
        return 1 + sum(self.directions.shape)

    def rows(self, context: NDArray[np.float32]) -> Floats:
        """The features of encoded contexts, ``[n, D] -> [n, 1 + D + R]``."""
        plain = with_constant(context, self.standardization)
        if self.phases.size == 0:
            return plain
        waves = np.cos(plain[:, 1:] @ self.directions + self.phases)
        waves *= math.sqrt(2)
        return np.concatenate([plain, waves], axis=1)


def _waves(log: Log) -> int:
    """Up to 128, if all choices may have slopes of their own; few are none."""
    choices = max(sum(len(slot.choices) for slot in log.schema.menu.slots), 1)
    single = len(log.schema.menu.slots) == 1 and not log.schema.menu.intervals
    widest = math.isqrt(MOST_NUMBERS // choices) if single else MOST_UNKNOWNS // choices
    count = min(WAVES, widest - 1 - log.schema.context.width, len(log) // (ROWS_PER_WAVE * choices))
    return count if count >= FEWEST_WAVES else 0
