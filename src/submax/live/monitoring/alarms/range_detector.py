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
    """How many ``values`` are far outside of ``low`` to ``high``, and the ``farthest`` of them.

    ``at`` is the number of values up to the end of their block.
    """

    at: int
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
        if not end:
            return []
        least, most = blocks.min(axis=1), blocks.max(axis=1)
        # The range before each block, and after the last one.
        first = (self.low, self.high) if self.seen else (least[0], most[0])
        low = np.minimum.accumulate(np.concatenate([first[:1], least]))
        high = np.maximum.accumulate(np.concatenate([first[1:], most]))
        # A value that grows slowly, such as a date, is not far outside.
        span = high - low
        far = (least < (low - span)[:-1]) | (most > (high + span)[:-1])
        found = []
        for place in far.nonzero()[0].tolist():
            seen = self.seen + place * BLOCK
            if seen >= FEWEST_SEEN:
                found += _outside(blocks[place], seen, float(low[place]), float(high[place]))
        self.low, self.high = float(low[-1]), float(high[-1])
        self.seen += end
        return found


def _outside(block: Floats, seen: int, low: float, high: float) -> list[Outside]:
    """What is far outside of ``low`` to ``high`` in a block after ``seen`` values, or nothing."""
    span = high - low
    above, below = int((block > high + span).sum()), int((block < low - span).sum())
    if max(above, below) < FEWEST_OUTSIDE:
        return []
    farthest = float(block.max() if above >= below else block.min())
    return [Outside(seen + BLOCK, max(above, below), farthest, low, high)]
