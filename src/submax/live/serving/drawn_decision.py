"""A decision that was drawn and is to be written."""

from typing import NamedTuple

from submax.live.log.group_draw import GroupDraw
from submax.live.serving.action_sampler import DrawnAction
from submax.live.store.event import Entry


class DrawnDecision(NamedTuple):
    """An action, the ``version`` that drew it, and the group of the decision.

    ``pin`` is to be written with the decision, if the unit of the decision gets a pin.
    """

    drawn: DrawnAction
    version: int
    holdout: bool = False
    group: GroupDraw | None = None
    paused: bool = False
    pin: Entry | None = None
