"""Rewards that came before their decisions."""

from submax.live.log.collecting.given_rewards import GivenRewards, Parts
from submax.live.log.collecting.quarantine import Quarantine, WaitingReward


class EarlyRewards:
    """The rewards of decisions that are not in the log yet, by the id of the decision.

    ``given`` are the rewards so far, and ``quarantine`` has how long each of them waits.
    """

    def __init__(
        self, given: GivenRewards[str], waiting: dict[str, WaitingReward] | None = None
    ) -> None:
        self.given = given
        self.quarantine = Quarantine(waiting)

    @property
    def values(self) -> dict[str, float]:
        """The rewards so far."""
        return self.given.values

    def add(
        self, identifier: str, value: float, parts: Parts | None, waiting: WaitingReward
    ) -> int:
        """Let a reward wait; return how many were dropped because too many wait."""
        self.given.add(identifier, value, parts)
        dropped = self.quarantine.add(identifier, waiting)
        for one in dropped:
            self.given.pop(one)
        return len(dropped)

    def release(self, identifier: str) -> tuple[float | None, Parts]:
        """Return the reward that waits for a decision, and forget it; None if there is none."""
        self.quarantine.release(identifier)
        return self.given.pop(identifier)

    def forget(self, now: float) -> int:
        """Forget the rewards whose time is over; return their number."""
        expired = self.quarantine.release_expired(now)
        for identifier in expired:
            self.given.pop(identifier)
        return len(expired)
