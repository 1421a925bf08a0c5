"""A bandit compared with its holdout and its control, as a ledger reads the log."""

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats
from submax.live.declaring.settings import Settings
from submax.live.lift.group_comparison import ComparedDecision, GroupComparison
from submax.live.log.group_draw import GROUPS

HOLDOUT, CONTROL = "holdout", "control"
"""The groups with which the other decisions are compared."""


class GroupComparisons:
    """Compares the decisions of each group with those that are in none of the groups."""

    def __init__(self, start: float) -> None:
        self.by_group = {group: GroupComparison(start=start) for group in (HOLDOUT, CONTROL)}

    @classmethod
    def of(cls, settings: Settings) -> "GroupComparisons":
        """The comparisons of a bandit before its first decision."""
        bounds = settings.scale.bounds
        return cls(settings.default_reward or 0.0 if bounds is None else bounds[0])

    def add(self, group: NDArray[np.void], reward: Floats, unit: NDArray[np.object_]) -> None:
        """Take matured decisions into account: records of ``GROUP``, rewards and units."""
        held_out = group["group"] == GROUPS.index(HOLDOUT)
        of_control = group["group"] == GROUPS.index(CONTROL)
        for name, share, inside, which in (
            (HOLDOUT, group["holdout_share"], held_out, group["holdout_share"] > 0),
            (CONTROL, group["control_share"], of_control, (group["control_share"] > 0) & ~held_out),
        ):
            chosen = np.flatnonzero(which)
            if len(chosen):
                columns = (group["since"], share, inside, reward, unit)
                rows = zip(*(column[chosen].tolist() for column in columns), strict=True)
                self.by_group[name].add([ComparedDecision(*row) for row in rows])
