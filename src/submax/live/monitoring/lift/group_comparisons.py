"""A bandit compared with its holdout and its control, as a ledger reads the log."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats
from submax.live.declaring.settings import Settings
from submax.live.log.group_draw import GROUP_NUMBERS
from submax.live.monitoring.lift.group_comparison import GroupComparison

HOLDOUT, CONTROL = "holdout", "control"
"""The groups with which the other decisions are compared."""


class GroupComparisons:
    """Adds decisions that have matured to the comparisons that they belong to."""

    def __init__(self, start: float) -> None:
        self.by_group = {group: GroupComparison(start=start) for group in (HOLDOUT, CONTROL)}

    @classmethod
    def of(cls, settings: Settings) -> "GroupComparisons":
        """The comparisons of a bandit before its first decision."""
        bounds = settings.scale.bounds
        return cls(settings.default_reward or 0.0 if bounds is None else bounds[0])

    def add(self, groups: NDArray[np.void], reward: Floats, unit: NDArray[np.object_]) -> None:
        """Add decisions in the order in which they matured; ``groups`` are ``GROUP_RECORD``."""
        number, since = groups["group"], groups["since"]
        is_held_out = number == GROUP_NUMBERS[HOLDOUT]
        share = groups["holdout_share"]
        self._add(HOLDOUT, share > 0, since, share, is_held_out, reward, unit)
        share = np.where(is_held_out, 0.0, groups["control_share"])
        is_control = number == GROUP_NUMBERS[CONTROL]
        self._add(CONTROL, share > 0, since, share, is_control, reward, unit)

    def _add(self, group: str, which: NDArray[np.bool_], *columns: NDArray[Any]) -> None:
        if which.any():
            self.by_group[group].add(*(column[which] for column in columns))
