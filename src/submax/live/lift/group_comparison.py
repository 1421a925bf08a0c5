"""A bandit compared with one of the groups that guard rails set apart."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from submax.live.lift.lift_tally import LiftTally
from submax.live.lift.unit_sample import UnitSample


class ComparedDecision(NamedTuple):
    """A matured decision: whether it was in the group, its reward and its unit.

    ``since`` and ``share`` are those of its ``GroupDraw``.
    """

    since: int
    share: float
    in_group: bool
    reward: float
    unit: str | None


class GroupComparison(msgspec.Struct):
    """What is known about the difference between a bandit and a group, in constant memory.

    ``since`` is the position of the settings by which the groups are drawn. ``counted`` draws are
    those of different units, and of decisions without a unit; ``chosen`` of these were in the
    group, and ``units`` of them were of units. ``chosen_units`` are those in the group.
    """

    since: int = 0
    start: float = 0.0
    tally: LiftTally | None = None
    counted: int = 0
    chosen: int = 0
    units: int = 0
    chosen_units: int = 0
    sample: UnitSample = msgspec.field(default_factory=UnitSample)

    def add(self, decisions: Sequence[ComparedDecision]) -> None:
        """Take further decisions into account, in the order in which they matured."""
        first = 0
        for place in range(1, len(decisions) + 1):
            ends = place == len(decisions) or not _is_alike(decisions[place], decisions[first])
            if ends:
                self._add_alike(decisions[first:place])
                first = place

    def _add_alike(self, decisions: Sequence[ComparedDecision]) -> None:
        """Add decisions whose groups were drawn by the same settings."""
        since, share = decisions[0][:2]
        if since < self.since:
            # Another process had not read the newest settings when it decided.
            return
        tally = self.tally
        if tally is None or since > self.since or share != tally.share:
            tally = self._begin(since, share)
        in_group = np.array([one.in_group for one in decisions])
        reward = np.array([one.reward for one in decisions])
        self.tally = tally.add(reward, in_group, [one.unit for one in decisions])
        for one in decisions:
            if one.unit is None or self.sample.is_new(one.unit):
                self.counted += 1
                self.chosen += one.in_group
                self.units += one.unit is not None
                self.chosen_units += one.unit is not None and one.in_group

    def _begin(self, since: int, share: float) -> LiftTally:
        """Forget everything: decisions with other shares or other actions are not comparable."""
        self.since = since
        self.counted = self.chosen = self.units = self.chosen_units = 0
        self.sample = UnitSample(set())
        return LiftTally(share, self.start)


def _is_alike(one: ComparedDecision, other: ComparedDecision) -> bool:
    return one.since == other.since and one.share == other.share
