"""The answers to callers: decisions, and receipts for rewards."""

import msgspec

from submax.schema.action import Action


class Decision(msgspec.Struct, frozen=True):
    """A decision of a live bandit, which is durable before the caller gets it.

    ``propensity`` is the probability with which the action was drawn, ``version`` the number of the
    version that drew it. A decision of the ``holdout`` has the baseline action and is not learned
    from. ``repeated``: the decision was made by an earlier call with the same id. ``unit`` is the
    one that the caller named. ``paused``: the bandit was paused, and no policy chose the action.
    """

    id: str
    action: Action
    propensity: float
    version: int
    holdout: bool = False
    repeated: bool = False
    unit: str | None = None
    paused: bool = False


class Receipt(msgspec.Struct, frozen=True):
    """The receipt for a reward or an activation.

    ``status`` is

    - ``accepted``;
    - ``late``: ``reward_wait`` was over, or the decision is in the archive already, so that the
      reward is stored but not learned from;
    - ``quarantined``: no decision has this id yet. The reward waits for the decision, for the
      seconds of the setting ``quarantine``;
    - ``conflict``: another value is stored under the same id and key, so that this one is not.

    ``repeated``: a reward or activation was stored before under the same id and key. With
    ``reward_wait=0`` a decision is learned from at its first reward; further rewards are accepted
    and stored, but not learned from.
    """

    id: str
    status: str
    repeated: bool = False
