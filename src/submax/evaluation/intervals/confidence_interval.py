"""The ends of a confidence interval."""

from typing import NamedTuple


class ConfidenceInterval(NamedTuple):
    """The lower and the upper end of a confidence interval."""

    low: float
    high: float

    @classmethod
    def around(cls, value: float, half: float) -> "ConfidenceInterval":
        """Return the interval from ``value - half`` to ``value + half``."""
        return cls(value - half, value + half)

    def joined(self, other: "ConfidenceInterval") -> "ConfidenceInterval":
        """Return the shortest interval that contains both intervals."""
        return ConfidenceInterval(min(self.low, other.low), max(self.high, other.high))
