"""A decision of the log, of which only what a ledger looks at is decoded."""

import msgspec

from submax.live.log.group_draw import GroupDraw
from submax.schema.menu import EncodedAction


class LeanDecision(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The fields of ``DecisionMade``, the long ones as the bytes in which they were written.

    Decoding all numbers of a decision takes several times as long, and the numbers of many contexts
    are decoded at once by ``encoded_contexts``.
    """

    action: EncodedAction
    propensity: float
    version: int
    context: msgspec.Raw
    eligible: msgspec.Raw
    probabilities: msgspec.Raw
    activated: bool
    holdout: bool
    unit: str | None = None
    group: GroupDraw | None = None
    paused: bool = False
