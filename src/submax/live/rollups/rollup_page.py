"""What one page of a log adds to rollups."""

from typing import Protocol

import numpy as np

from submax.live.rollups.rollups import DecisionColumns, Rollups
from submax.schema.menu import EncodedAction


class CountedDecision(Protocol):
    """What is counted of a decision."""

    @property
    def action(self) -> EncodedAction: ...
    @property
    def propensity(self) -> float: ...
    @property
    def version(self) -> int: ...
    @property
    def holdout(self) -> bool: ...


class RollupPage:
    """Collects decisions while a page is read, because many are added at once far quicker.

    ``now`` is the time of the event that is being read: a decision matures at that time.
    """

    def __init__(self, slots: int) -> None:
        self.now = 0.0
        self._slots = slots
        self._made: list[tuple[float, CountedDecision]] = []
        self._matured: list[tuple[float, CountedDecision, float, bool]] = []

    def made(self, at: float, decision: CountedDecision) -> None:
        """Count a decision that was made."""
        self._made.append((at, decision))

    def matured(self, decision: CountedDecision, reward: float, rewarded: bool) -> None:
        """Count a decision that matured now."""
        self._matured.append((self.now, decision, reward, rewarded))

    def add_to(self, rollups: Rollups) -> None:
        """Add what was collected, and forget it."""
        if self._made:
            rollups.decided(
                self._columns([one[0] for one in self._made], [one[1] for one in self._made])
            )
        if self._matured:
            at, decisions, rewards, rewarded = zip(*self._matured, strict=True)
            rollups.matured(
                self._columns(list(at), list(decisions)),
                np.array(rewards, float),
                np.array(rewarded, bool),
                np.array([one.propensity for one in decisions]),
            )
        self._made.clear()
        self._matured.clear()

    def _columns(self, at: list[float], decisions: list[CountedDecision]) -> DecisionColumns:
        chosen = [one.action[: self._slots] for one in decisions]
        return DecisionColumns(
            np.array(at),
            np.array(chosen, np.int64).reshape(len(at), self._slots),
            np.array([one.version for one in decisions], np.int64),
            np.array([one.holdout for one in decisions], bool),
        )
