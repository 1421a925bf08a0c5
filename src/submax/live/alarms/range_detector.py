"""Detects numbers of a context that are far outside of what was seen."""

from typing import NamedTuple

import msgspec
import numpy as np

from submax.core.arrays import Floats

BLOCK = 100
"""Values that are looked at together."""
FEWEST_SEEN = 1000
"""Values that must have been seen before others are compared with them."""
FEWEST_OUTSIDE = 6
"""Values of a block, all above or all below everything that was seen before, that are an alarm. If
the order of values means nothing, a block of 100 after 1000 others has so many with a chance of at
most 2 × (100 / 1100)⁶, about 1 in 900,000, and of less after more values."""


class Outside(NamedTuple):
    """How many ``values`` are far outside of ``low`` to ``high``, and the ``farthest`` of them."""

    values: int
    farthest: float
    low: float
    high: float


class RangeDetector(msgspec.Struct):
    """The lowest and highest value of one field so far, and the values of the block under way.

    If values come in an order that means nothing, the k largest of N + n values are all among the
    last n with the chance n/(N+n) × (n−1)/(N+n−1) × …, at most (n/(N+n))ᵏ, whatever the
    distribution of the values is. Far outside means by more than the range itself, which is rarer.
    """

    seen: int = 0
    low: float = 0.0
    high: float = 0.0
    waiting: list[float] = []

    def add(self, values: Floats) -> list[Outside]:
        """Take further values into account, and return the blocks that are far outside."""
        self.waiting = [*self.waiting, *values.tolist()]
        found = []
        while len(self.waiting) >= BLOCK:
            block, self.waiting = np.array(self.waiting[:BLOCK]), self.waiting[BLOCK:]
            outside = self._look(block)
            if outside is not None:
                found.append(outside)
        return found

    def _look(self, block: Floats) -> Outside | None:
        found = None
        if self.seen >= FEWEST_SEEN:
            # A value that grows slowly, such as a date, is not far outside.
            span = self.high - self.low
            above = int((block > self.high + span).sum())
            below = int((block < self.low - span).sum())
            if max(above, below) >= FEWEST_OUTSIDE:
                farthest = block.max() if above >= below else block.min()
                found = Outside(max(above, below), float(farthest), self.low, self.high)
        least, most = float(block.min()), float(block.max())
        self.low = min(self.low, least) if self.seen else least
        self.high = max(self.high, most) if self.seen else most
        self.seen += len(block)
        return found
