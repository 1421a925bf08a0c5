"""The types in which Python callers declare a bandit."""

import typing
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, TypedDict

from submax.core.policy import Policy
from submax.core.rewards import Scale
from submax.live.declaring.alarm_settings import AlarmSettings
from submax.live.declaring.guard_rails import GuardRails
from submax.live.declaring.setting_types import Combination, Status, Stickiness

Actions = Sequence[str] | Mapping[str, Sequence[str] | Sequence[float]]
"""Names of arms, or a table of slots, each with names of choices or (low, high)."""


class BanditOptions(TypedDict, total=False):
    """The types in which Python callers declare a bandit, beside its actions.

    ``Settings`` and ``PLAIN_FORMS`` describe each option and its default; a test asserts that names
    and types agree with them.
    """

    action_features: Mapping[str, Mapping[str, Any]]
    context: Mapping[str, Any]
    policy: str | Mapping[str, Any] | Policy[Any]
    shadow: str | Mapping[str, Any] | Policy[Any] | None
    rewards: Scale | str | Mapping[str, Any]
    combine: Combination
    reward_wait: float | timedelta
    no_reward_after: float | timedelta | None
    default_reward: float | None
    quarantine: float | timedelta
    guard_rails: GuardRails | Mapping[str, Any]
    alarms: AlarmSettings | Mapping[str, Any]
    sticky: Stickiness | float | timedelta
    status: Status
    refit_rows: int
    refit_seconds: float | timedelta
    seed: int
    keep_versions: int
    archive_after: float | timedelta | None
    learn_share: float | None


class Declaration(BanditOptions, total=False):
    """The options of a bandit and its actions."""

    actions: Actions


DURATIONS = [
    name
    for name, hint in typing.get_type_hints(BanditOptions).items()
    if timedelta in typing.get_args(hint)
]
"""Settings in seconds, which may be given as a ``timedelta``."""
