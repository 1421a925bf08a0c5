"""Which rows of a buffer are held out of training."""

from typing import NamedTuple, Self

import numpy as np

from submax.core.arrays import Booleans, Integers

EVERY = 10
"""One row in so many is held out: few enough to miss little, and enough to see overfitting."""
MOST = 2048
"""Most rows held out in a replica, the latest ones, so that the cost of a look is bounded."""
FEWEST = 64
"""With fewer rows none is held out, since five rows cannot say when to stop. It is a power of two,
so that the first refit with a held-out part begins with new parameters.
"""


class HeldOut(NamedTuple):
    """Of the rows of each replica from place ``first [R]`` on every tenth, ``rows [R]`` in all.

    A row that was once trained on is never held out later, as long as rows keep their place.
    """

    first: Integers
    rows: Integers

    @classmethod
    def of(cls, filled: Integers) -> Self:
        """For ``filled [R]`` rows in each replica."""
        candidates = np.where(filled < FEWEST, 0, filled // EVERY)
        rows = np.minimum(candidates, MOST)
        return cls(EVERY * (candidates - rows), rows)

    def places(self) -> tuple[Integers, Booleans]:
        """The places of the held-out rows, ``[R, MOST]``, and which of them there are."""
        index = np.arange(MOST)
        there = index < self.rows[:, None]
        return np.where(there, self.first[:, None] + EVERY * (index + 1) - 1, 0), there

    def trained_on(self, index: Integers) -> Integers:
        """The places of the rows that are not held out, by their number: ``[..., R, n]``."""
        beyond = np.maximum(index - self.first[:, None], 0)
        # From there on one place in ten is jumped over.
        places: Integers = index + np.minimum(beyond // (EVERY - 1), self.rows[:, None])
        return places
