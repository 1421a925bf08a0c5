"""The group of a decision, if guard rails set decisions apart."""

from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

Group = Literal["bandit", "holdout", "control"]
GROUPS = (None, "bandit", "holdout", "control")
"""The groups by number; 0 is that of a decision without a group."""
GROUP_NUMBERS = {group: number for number, group in enumerate(GROUPS)}
GROUP_RECORD = np.dtype(
    [("since", "i8"), ("group", "u1"), ("holdout_share", "f8"), ("control_share", "f8")]
)
"""A ``GroupDraw`` as a record of an array, with the number of its group; all bytes of a decision
without a group are 0."""


class GroupDraw(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The group into which a decision was drawn, and the probabilities of the groups.

    ``since`` is the position of the settings by which the groups were drawn: decisions with
    different values must not be compared. ``holdout_share`` is the probability of the holdout; 0 if
    the baseline was not eligible. ``control_share`` is the probability of the control among the
    decisions that are not held out; 0 if there was nothing to choose between it and others.
    """

    since: int
    group: Group
    holdout_share: float
    control_share: float


def group_record(group: GroupDraw | None) -> tuple[int, int, float, float]:
    """The group of a decision as a record."""
    if group is None:
        return (0, 0, 0.0, 0.0)
    number = GROUP_NUMBERS[group.group]
    return (group.since, number, group.holdout_share, group.control_share)


def group_texts(records: NDArray[np.void]) -> list[str | None]:
    """The names of the groups of records; None for a decision without a group."""
    return [GROUPS[number] for number in records["group"].tolist()]
