"""Rewards that come back at random times, at other times in every replica."""

import numpy as np

from submax.core.arrays import Floats, Integers
from submax.core.contracts.feedback import Feedback
from submax.simulation.pending import joined


class WaitingRewards:
    """Decisions by the time at which their rewards come back.

    A decision that comes back now in some replicas only is a row of weight 0 in the others.
    """

    def __init__(self) -> None:
        self._due: dict[int, list[Feedback]] = {}
        self._now = 0

    def put(self, feedback: Feedback, wait: Integers) -> None:
        """Add a single decision of each replica, arrays ``[R, 1, ...]``, and its waits ``[R]``."""
        for after in np.unique(wait).tolist():
            weight: Floats = (wait == after).astype(np.float64)[:, None]
            self._due.setdefault(self._now + after, []).append(feedback._replace(weight=weight))

    def take(self) -> Feedback | None:
        """Return the decisions whose rewards come back now, and wait for the next decision."""
        found = self._due.pop(self._now, None)
        self._now += 1
        return None if found is None else joined(found)
