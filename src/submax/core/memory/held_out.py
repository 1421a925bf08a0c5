"""Which rows of a buffer are held out of training, to decide when to stop."""

from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Booleans, Integers

EVERY = 10
"""One row in 10 is held out: few enough to lose little, and enough to detect overfitting."""
MAX_HELD_OUT_ROWS = 2048
"""Largest number of held-out rows of a replica; the latest ones are used. It bounds the cost of
computing the held-out loss."""
MIN_ROWS_TO_HOLD_OUT = 64
"""With fewer rows than this none is held out, because six rows cannot tell when to stop. The value
is a power of two, so that the first refit with held-out rows starts from new parameters.
"""


class HeldOut(NamedTuple):
    """Every tenth row of each replica from index ``first [R]`` on, ``rows [R]`` rows in total.

    A row that was used for training is never held out later, as long as rows keep their index.
    """

    first: Integers
    rows: Integers

    @classmethod
    def of(cls, filled: Integers) -> Self:
        """Return the held-out rows of replicas with ``filled [R]`` rows."""
        candidates = np.where(filled < MIN_ROWS_TO_HOLD_OUT, 0, filled // EVERY)
        rows = np.minimum(candidates, MAX_HELD_OUT_ROWS)
        return cls(EVERY * (candidates - rows), rows)

    def places(self) -> tuple[Integers, Booleans]:
        """Return indices of held-out rows and which of these entries are in use.

        Both are ``[R, MAX_HELD_OUT_ROWS]``.
        """
        index = np.arange(MAX_HELD_OUT_ROWS)
        there = index < self.rows[:, None]
        return np.where(there, self.first[:, None] + EVERY * (index + 1) - 1, 0), there

    def trained_on(self, index: Integers) -> Integers:
        """Return the buffer index of each training row, by its number: ``[..., R, n]``."""
        beyond = np.maximum(index - self.first[:, None], 0)
        # From ``first`` on, every tenth row is skipped.
        places: Integers = index + np.minimum(beyond // (EVERY - 1), self.rows[:, None])
        return places
