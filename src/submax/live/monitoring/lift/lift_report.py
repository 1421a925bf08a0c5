"""What can be said about the lift of a bandit now."""

from typing import Any

import msgspec


class SampleRatioReport(msgspec.Struct, frozen=True):
    """Whether a group has the share that it should have; see ``SampleRatio``."""

    expected: float
    observed: float
    p_value: float
    alarm: bool


class LiftReport(msgspec.Struct, frozen=True, kw_only=True):
    """The difference in reward per decision between a bandit and a group, ``against`` it.

    With a chance of 95 % the truth is between ``low`` and ``high`` at all times together, however
    often one looks; None: nothing can be said on this side. The truth is the mean difference over
    all decisions that have matured since the groups were last changed. ``exact``: the chance
    holds for any number of decisions, not only for large samples. ``cautions`` are sentences about
    what the interval relies on. In an ``aa_test`` both groups decide alike, and ``alarm`` means
    that they differ nevertheless, or that their sizes are wrong.
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
