"""Rewards that came before their decisions."""

from collections.abc import Callable

from submax.live.log.collecting.quarantine import Quarantine, Waiting

Combine = Callable[[float, float], float]


class EarlyRewards:
    """The rewards of decisions that are not in the log yet, by the id of the decision.

    ``values`` are the rewards so far, and ``quarantine`` has how long each of them waits.
    """

    def __init__(
        self, values: dict[str, float] | None = None, waiting: dict[str, Waiting] | None = None
    ) -> None:
        self.values: dict[str, float] = {} if values is None else values
        self.quarantine = Quarantine(waiting)

    def add(self, identifier: str, value: float, waiting: Waiting, combine: Combine) -> int:
        """Let a reward wait; return how many were dropped because too many wait."""
        before = self.values.get(identifier)
        self.values[identifier] = value if before is None else combine(before, value)
        dropped = self.quarantine.add(identifier, waiting)
        for one in dropped:
            del self.values[one]
        return len(dropped)

    def release(self, identifier: str) -> float | None:
        """Return the reward that waits for a decision, and forget it; None if there is none."""
        self.quarantine.release(identifier)
        return self.values.pop(identifier, None)

    def forget(self, now: float) -> int:
        """Forget the rewards whose time is over; return their number."""
        expired = self.quarantine.release_expired(now)
        for identifier in expired:
            del self.values[identifier]
        return len(expired)
