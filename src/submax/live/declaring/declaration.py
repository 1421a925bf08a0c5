"""The words by which a bandit is declared."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal, TypedDict

from submax.core.contracts.policy import Policy
from submax.core.rewards.scale import Scale
from submax.live.declaring.guard_rails import GuardRails

Actions = Sequence[str] | Mapping[str, Sequence[str] | Sequence[float]]
"""Names of arms, or a table of slots, each with names of choices or (low, high)."""


class Options(TypedDict, total=False):
    """What can be declared of a bandit beside its actions.

    action_features: a table of choices, each with a table of numbers and texts that describe it;
        with named slots, a table of slots with such tables.
    context: a table of fields: ``float``, a list of categories, or one with a default.
    policy: a name such as ``rcp-adaptive``, a table with a ``kind``, or a Policy.
    rewards: the scale of rewards, ``submax.Binary()`` if it is not given.
    combine: what several rewards of a decision are together: ``last``, ``first``, ``max``, ``sum``.
    reward_wait: seconds after which a decision matures: then it is learned from, not before. With
        0 it matures when its reward comes.
    no_reward_after: with ``reward_wait=0``, seconds after which a decision without a reward is
        learned from with the ``default_reward``; None: it never is.
    default_reward: that of a decision without any by then; None: it is not learned from.
    quarantine: seconds that a reward waits for a decision with its id.
    guard_rails: a ``GuardRails``, or a table of its fields.
    refit_rows: matured decisions after which a new version is fitted.
    refit_seconds: time after which this is done even if there are fewer.
    seed: of the fits: the same log and seed give the same version.
    keep_versions: versions whose models are kept.
    learn_share: of a bandit in memory: it learns before a decision if the rows that are new are
        this share of those learned from; 0: from every row at once. None: 0.02, or 0.25 if the
        policy trains networks.
    """

    action_features: Mapping[str, Mapping[str, Any]]
    context: Mapping[str, Any]
    policy: str | Mapping[str, Any] | Policy[Any]
    rewards: Scale | str | Mapping[str, Any]
    combine: Literal["first", "last", "max", "sum"]
    reward_wait: float | timedelta
    no_reward_after: float | timedelta | None
    default_reward: float | None
    quarantine: float | timedelta
    guard_rails: GuardRails | Mapping[str, Any]
    refit_rows: int
    refit_seconds: float | timedelta
    seed: int
    keep_versions: int
    learn_share: float | None


class Declaration(Options, total=False):
    """What can be declared of a bandit: its options, and its actions.

    actions: names of arms, or a table of slots, each with names of choices or (low, high).
    """

    actions: Actions
