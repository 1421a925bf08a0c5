"""The time that has passed, computed from the times of the events in a log."""

import numpy as np

from submax.core.arrays import Floats


class LogClock:
    """Seconds that have passed along a log whose clock may be set back.

    A step back counts as no time, and time goes on from there. So nothing matures twice, and a
    clock that is set back by an hour does not delay anything by an hour.

    >>> clock = LogClock()
    >>> [clock.advance(at) for at in (100.0, 101.0, 50.0, 52.0)]
    [0.0, 1.0, 1.0, 3.0]
    """

    def __init__(self, elapsed: float = 0.0, last: float | None = None) -> None:
        self.elapsed, self.last = elapsed, last

    def advance(self, at: float) -> float:
        """Go to the next event, which was written ``at`` this time; return the seconds elapsed."""
        self.elapsed = self.would_be(at)
        self.last = at
        return self.elapsed

    def would_be(self, at: float) -> float:
        """What ``advance`` would say, without moving."""
        return self.elapsed if self.last is None else self.elapsed + max(0.0, at - self.last)

    def along(self, times: Floats) -> Floats:
        """What ``advance`` would say at each of many events, without moving.

        The sums are computed in the same order as by ``advance``, so that they are equal.
        """
        sums = np.empty(len(times) + 1)
        sums[0], sums[1] = self.elapsed, 0.0 if self.last is None else times[0] - self.last
        sums[2:] = times[1:] - times[:-1]
        np.maximum(sums[1:], 0.0, out=sums[1:])
        return np.cumsum(sums)[1:]

    def move_to(self, elapsed: float, last: float) -> None:
        """Go to an event whose time is ``last``, where ``along`` said ``elapsed``."""
        self.elapsed, self.last = float(elapsed), float(last)
