"""What callers are told."""

import msgspec

from submax.schema.menu import Action


class Decision(msgspec.Struct, frozen=True):
    """A decision, written down before it was told.

    ``propensity`` is the probability with which the action was drawn, ``version`` the model that
    drew it. A ``holdout`` has the baseline, and is not learned from. ``repeated``: it was made
    before under this id.
    """

    id: str
    action: Action
    propensity: float
    version: int
    holdout: bool = False
    repeated: bool = False


class Receipt(msgspec.Struct, frozen=True):
    """What became of a reward or an activation.

    ``status`` is `accepted`; `late` where ``reward_wait`` was over by the clock, so that it is kept
    but not learned; `quarantined` where no decision has this id yet; `conflict` where another value
    stands under its key, so that it was not kept. ``repeated``: something was there before. With
    ``reward_wait=0`` a decision is learned from at its first reward; others are `accepted` too, and
    kept, but not learned.
    """

    id: str
    status: str
    repeated: bool = False
