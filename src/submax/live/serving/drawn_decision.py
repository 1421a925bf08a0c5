"""A decision that was drawn and is to be written."""

from typing import NamedTuple

from submax.bandit.active_version import DrawnAction
from submax.bandit.assignment import ExperimentAssignment
from submax.live.store.event import Entry


class DrawnDecision(NamedTuple):
    """An action, the ``version`` that drew it, and the group of the decision.

    ``pin`` is to be written with the decision, if the unit of the decision gets a pin.
    """

    drawn: DrawnAction
    version: int
    holdout: bool = False
    group: ExperimentAssignment | None = None
    paused: bool = False
    pin: Entry | None = None
