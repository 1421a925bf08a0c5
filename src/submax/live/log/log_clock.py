"""Time as the log tells it."""


class LogClock:
    """Seconds that have passed along a log of times that may jump.

    A step back counts as no time at all, and the clock goes on from there: what waits for a time
    to come is never reached twice, nor put off by as much as the clock went back.

    >>> clock = LogClock()
    >>> [clock.advance(at) for at in (100.0, 101.0, 50.0, 52.0)]
    [0.0, 1.0, 1.0, 3.0]
    """

    def __init__(self, elapsed: float = 0.0, last: float | None = None) -> None:
        self.elapsed, self.last = elapsed, last

    def advance(self, at: float) -> float:
        """The time elapsed at the next event."""
        self.elapsed = self.would_be(at)
        self.last = at
        return self.elapsed

    def would_be(self, at: float) -> float:
        """What ``advance`` would say, without moving."""
        return self.elapsed if self.last is None else self.elapsed + max(0.0, at - self.last)
