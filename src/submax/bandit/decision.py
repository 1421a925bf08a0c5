"""What callers get: decisions, receipts and reports on lift. Clients import it without numpy."""

from typing import Any

import msgspec

from submax.schema.names import Action


class Decision(msgspec.Struct, frozen=True, gc=False):
    """A decision of a live bandit; with a store it is durable before the caller gets it.

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


class Receipt(msgspec.Struct, frozen=True, gc=False):
    """The receipt for a reward or an activation.

    ``status`` is

    - ``accepted``;
    - ``late``: ``reward_wait`` was over, so the reward is stored but not learned from;
    - ``quarantined``: no decision of the store has this id yet. The reward waits for it, for the
      seconds of the setting ``quarantine``;
    - ``conflict``: another value is stored under the same id and key, so this one is not.

    ``repeated``: a reward or activation was stored before under the same id and key. With
    ``reward_wait=0`` a decision is learned from at its first reward; further rewards are accepted
    and stored, but not learned from.
    """

    id: str
    status: str
    repeated: bool = False


class SampleRatioReport(msgspec.Struct, frozen=True):
    """Whether a group has the share that it should have.

    If it does, the chance that ``p_value`` is ever below ε is at most ε; ``alarm``: it is below
    0.01.
    """

    expected: float
    observed: float
    p_value: float
    alarm: bool


class LiftReport(msgspec.Struct, frozen=True, kw_only=True):
    """The difference in reward per decision between a bandit and a group, ``against`` it.

    With 95 % probability the truth is between ``low`` and ``high`` at all times together, however
    often you look; None: unknown on this side. The truth is the mean difference over all decisions
    that have matured since the groups were last changed. ``exact``: this holds for any number of
    decisions, not only for large samples. ``cautions`` say what the interval relies on. In an
    ``aa_test`` both groups are treated alike, and ``alarm`` means that they differ nevertheless, or
    that their sizes are wrong.
    """

    against: str
    action: Any
    estimate: float | None
    low: float | None
    high: float | None
    exact: bool
    mean: float | None
    mean_of_group: float | None
    decisions: int
    decisions_of_group: int
    sample_ratio: SampleRatioReport | None
    aa_test: bool
    alarm: bool
    cautions: list[str]
