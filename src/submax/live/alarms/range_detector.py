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
        known = np.concatenate([self.waiting, values])
        end = len(known) - len(known) % BLOCK
        blocks, self.waiting = known[:end].reshape(-1, BLOCK), known[end:].tolist()
        found = []
        ends = zip(blocks.min(axis=1).tolist(), blocks.max(axis=1).tolist(), strict=True)
        for block, (least, most) in zip(blocks, ends, strict=True):
            outside = self._outside(block, least, most)
            if outside is not None:
                found.append(outside)
            self.low = min(self.low, least) if self.seen else least
            self.high = max(self.high, most) if self.seen else most
            self.seen += BLOCK
        return found

    def _outside(self, block: Floats, least: float, most: float) -> Outside | None:
        """What is far outside in a block, whose least and largest values are given."""
        # A value that grows slowly, such as a date, is not far outside.
        span = self.high - self.low
        low, high = self.low - span, self.high + span
        if self.seen < FEWEST_SEEN or (least >= low and most <= high):
            return None
        above, below = int((block > high).sum()), int((block < low).sum())
        if max(above, below) < FEWEST_OUTSIDE:
            return None
        farthest = most if above >= below else least
        return Outside(max(above, below), farthest, self.low, self.high)
