"""The group of a decision, if guard rails set decisions apart."""

from typing import Literal, get_args

import msgspec

Group = Literal["bandit", "holdout", "control"]
GROUPS: tuple[Group, ...] = get_args(Group)


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
