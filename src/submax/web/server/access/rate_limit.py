"""A limit on requests a second for each caller; the server uses each pair of key and bandit."""

import time
from collections.abc import Callable


class RateLimit:
    """A token bucket for each caller.

    It gains ``rate`` tokens a second and holds at most max(rate, 1) tokens.

    >>> limit = RateLimit(clock=lambda: 0.0)
    >>> [limit.allows("me", 2.0) for _ in range(3)]
    [True, True, False]
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: dict[object, tuple[float, float]] = {}

    def allows(self, caller: object, rate: float, cost: float = 1.0) -> bool:
        """Take ``cost`` tokens if the bucket has them, or is full; return whether it did.

        A full bucket allows even a larger cost, and must then fill up from below zero.
        """
        now, most = self._clock(), max(rate, 1.0)
        level, before = self._buckets.get(caller, (most, now))
        level = min(most, level + (now - before) * rate)
        allowed = level >= min(cost, most)
        self._buckets[caller] = (level - cost if allowed else level, now)
        return allowed
