"""The answers of the HTTP interface."""

from typing import Any

import msgspec

from submax.bandit.decision import Decision, LiftReport, Receipt
from submax.bandit.guard_rails import GuardRails
from submax.live.operating.arm_status import ArmStatus


class Failure(msgspec.Struct, frozen=True):
    """An error: one sentence for people, and a code for programs. Nothing was changed."""

    error: str
    code: str


class Health(msgspec.Struct, frozen=True):
    """The state of the server."""

    status: str


class Decisions(msgspec.Struct, frozen=True):
    """Decisions in the order of the requests."""

    decisions: list[Decision]


class Receipts(msgspec.Struct, frozen=True):
    """Receipts in the order of the rewards."""

    receipts: list[Receipt]


class ChoiceDetails(msgspec.Struct, frozen=True, omit_defaults=True):
    """A choice with its status: active, paused or retired; and its features, if it has any."""

    choice: str
    status: str
    features: dict[str, float | str] = {}


class BanditDetails(msgspec.Struct, frozen=True):
    """A bandit with its settings and counts; plain arms are one slot with an empty name.

    ``context_ignored``: there is a context, and the policy does not use it. ``failures``: how often
    something failed since the server was started, and the bandit went on, by kind of failure.
    ``arms`` are the choices with their decisions, reward rates and probabilities, and ``notices``
    are sentences about what should be looked at. ``alarms``: active
    alarms by kind.
    """

    name: str
    actions: dict[str, list[ChoiceDetails | float]]
    context: dict[str, Any]
    policy: Any
    context_ignored: bool
    rewards: dict[str, Any]
    combine: str
    reward_wait: float
    no_reward_after: float | None
    default_reward: float | None
    guard_rails: GuardRails
    version: int
    held: bool
    counts: dict[str, int]
    failures: dict[str, int]
    status: str
    sticky: str | float
    quarantine: float
    refit_rows: int
    refit_seconds: float
    seed: int
    keep_versions: int
    archive_after: float | None
    arms: list[ArmStatus]
    notices: list[str]
    alarms: dict[str, int]


class Lifts(msgspec.Struct, frozen=True):
    """The lift of a bandit over its holdout and over its control, as far as they are declared."""

    lifts: list[LiftReport]


class Bandits(msgspec.Struct, frozen=True):
    """The names of all bandits."""

    bandits: list[str]


class VersionDetails(msgspec.Struct, frozen=True):
    """A version: the hash of its model, and the rows that it was fitted to."""

    version: int
    model: str
    policy: Any
    rows: int
    learned: int
    rows_hash: str
    seed: int


class Versions(msgspec.Struct, frozen=True):
    """All versions, and the one that decides."""

    versions: list[VersionDetails]
    deciding: int
    held: bool


class Deciding(msgspec.Struct, frozen=True):
    """The version that decides now."""

    version: int


class AlarmDetails(msgspec.Struct, frozen=True):
    """An alarm in one sentence, with its time and its values.

    It is ``active`` until it is over or acknowledged. ``subject`` is the field of the context, if
    it is about one.
    """

    kind: str
    at: str
    active: bool
    sentence: str
    subject: str
    values: dict[str, float]


class Alarms(msgspec.Struct, frozen=True):
    """The last 100 alarms, newest first."""

    alarms: list[AlarmDetails]


class KeyDetails(msgspec.Struct, frozen=True):
    """A key without its secret.

    ``expires`` and ``last_used`` are times; None if the key does not expire, or was never used.
    """

    id: str
    name: str
    scopes: list[str]
    bandits: list[str] | None
    rate: float | None
    expires: str | None
    last_used: str | None
    browser: bool


class KeyMade(msgspec.Struct, frozen=True):
    """A new key; this is the only answer that has its text."""

    id: str
    key: str


class Keys(msgspec.Struct, frozen=True):
    """All keys."""

    keys: list[KeyDetails]


class AuditedChange(msgspec.Struct, frozen=True):
    """A change: who made it (the id and the name of a key), when, and what was changed.

    ``subject`` is a bandit or the id of a key, and ``detail`` the begin of the request.
    """

    at: str
    key: str
    name: str
    operation: str
    subject: str
    detail: str


class Audit(msgspec.Struct, frozen=True):
    """The last changes, newest first."""

    changes: list[AuditedChange]
