"""Rollups of a reader that needs none."""

from submax.core.arrays import Booleans, Floats
from submax.live.monitoring.rollups.counted_columns import (
    CameRewards,
    CountedDecisions,
    LearnedDecisions,
)
from submax.live.monitoring.rollups.rollups import Rollups


class IgnoredRollups(Rollups):
    """Adds nothing: sums take a sixth of the time of an export, which shows none."""

    def read(self, rewards: CameRewards, last: int) -> None:
        pass

    def decided(self, at: Floats, decisions: CountedDecisions) -> None:
        pass

    def learned(self, rows: LearnedDecisions) -> None:
        pass

    def matured(
        self,
        at: Floats,
        decisions: CountedDecisions,
        reward: Floats,
        rewarded: Booleans,
        weight: Floats,
    ) -> None:
        pass
