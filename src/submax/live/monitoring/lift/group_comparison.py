"""A bandit compared with one of the groups that guard rails set apart."""

from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats
from submax.live.monitoring.lift.lift_tally import LiftTally
from submax.live.monitoring.lift.unit_sample import UnitSample


class GroupComparison(msgspec.Struct):
    """What is known about the difference between a bandit and a group, in constant memory.

    ``since`` is the position of the settings by which the groups are drawn. ``counted`` draws are
    those of different units, and of decisions without a unit; ``chosen`` of these were in the
    group.
    """

    since: int = 0
    start: float = 0.0
    tally: LiftTally | None = None
    counted: int = 0
    chosen: int = 0
    sample: UnitSample = msgspec.field(default_factory=UnitSample)

    def add(
        self,
        since: NDArray[np.int64],
        share: Floats,
        in_group: Booleans,
        reward: Floats,
        unit: NDArray[np.object_],
    ) -> None:
        """Take further decisions into account, in the order in which they matured."""
        changes = np.flatnonzero((np.diff(since) != 0) | (np.diff(share) != 0)) + 1
        ends = [0, *changes.tolist(), len(since)]
        for first, last in pairwise(ends):
            part = slice(first, last)
            settings = int(since[first]), float(share[first])
            self._add_alike(*settings, in_group[part], reward[part], unit[part].tolist())

    def _add_alike(
        self, since: int, share: float, in_group: Booleans, reward: Floats, units: list[Any]
    ) -> None:
        """Add decisions whose groups were drawn by the same settings."""
        if since < self.since:
            # Another process had not read the newest settings when it decided.
            return
        tally = self.tally
        if tally is None or since > self.since or share != tally.share:
            tally = self._begin(since, share)
        self.tally = tally.add(reward, in_group, units)
        for is_chosen, unit in zip(in_group.tolist(), units, strict=True):
            if unit is None or self.sample.is_new(unit):
                self.counted += 1
                self.chosen += is_chosen

    def _begin(self, since: int, share: float) -> LiftTally:
        """Forget everything: decisions with other shares or other actions are not comparable."""
        self.since, self.counted, self.chosen = since, 0, 0
        self.sample = UnitSample({})
        return LiftTally(share, self.start)
