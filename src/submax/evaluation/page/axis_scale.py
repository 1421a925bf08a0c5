"""The common horizontal scale of several intervals in a figure."""

import math
from collections.abc import Iterable
from typing import NamedTuple

MARGIN = 0.04
"""Empty share of the width at each end of a figure."""


class Mark(NamedTuple):
    """A value and its interval as places from 0 to 100; ``value`` is None if it is not known."""

    value: float | None
    low: float
    high: float


class AxisScale(NamedTuple):
    """The numbers at the left and at the right end of a figure."""

    first: float
    last: float

    @classmethod
    def of(cls, numbers: Iterable[float]) -> "AxisScale":
        """Return the scale on which all finite numbers have a place.

        >>> AxisScale.of([1.0, 2.0, float("inf")])
        AxisScale(first=0.96, last=2.04)
        """
        known = [one for one in numbers if math.isfinite(one)] or [0.0, 1.0]
        low, high = min(known), max(known)
        margin = MARGIN * (high - low) or 0.5
        return cls(low - margin, high + margin)

    def place(self, number: float) -> float:
        """Return the place of a number, from 0 to 100; numbers beyond the ends are at the ends."""
        if math.isnan(number):
            return 0.0
        share = (number - self.first) / (self.last - self.first)
        return round(100 * min(max(share, 0.0), 1.0), 2)

    def mark(self, value: float, low: float, high: float) -> Mark:
        """Return the places of a value and of its interval."""
        known = None if math.isnan(value) else self.place(value)
        ends = (-math.inf if math.isnan(low) else low, math.inf if math.isnan(high) else high)
        return Mark(known, self.place(ends[0]), self.place(ends[1]))
