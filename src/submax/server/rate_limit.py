"""How often a caller may ask."""

import time
from collections.abc import Callable


class RateLimit:
    """A bucket for each caller that fills by ``rate`` a second, up to one second's worth.

    >>> limit = RateLimit(clock=lambda: 0.0)
    >>> [limit.allows("me", 2.0) for _ in range(3)]
    [True, True, False]
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: dict[object, tuple[float, float]] = {}

    def allows(self, caller: object, rate: float, cost: float = 1.0) -> bool:
        """Take the cost if the bucket holds it, or is full; what it lacks then is filled first."""
        now, most = self._clock(), max(rate, 1.0)
        level, before = self._buckets.get(caller, (most, now))
        level = min(most, level + (now - before) * rate)
        allowed = level >= min(cost, most)
        self._buckets[caller] = (level - cost if allowed else level, now)
        return allowed
