"""The messages of the HTTP interface; unknown fields and wrong types are refused."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from submax.live.declaring.guard_rails import GuardRails
from submax.live.declaring.settings import DECLARED_TYPES, MEMORY_ONLY, ChoiceFeatures, Name
from submax.live.lift.lift_report import LiftReport
from submax.live.operating.arm_status import ArmStatus
from submax.live.serving.decision import Decision, Receipt
from submax.live.store.pending_write import MAX_REQUESTS_PER_CALL
from submax.server.access.key import MAX_NAME_LENGTH, Scope

IDENTIFIER_PATTERN, NAME_PATTERN = "^[!-~]{1,128}$", "^[a-z0-9][a-z0-9_-]{0,63}$"
Identifier = Annotated[str, Meta(pattern=IDENTIFIER_PATTERN, min_length=1, max_length=128)]
BanditName = Annotated[str, Meta(pattern=NAME_PATTERN, max_length=64)]
KeyIdentifier = Annotated[str, Meta(pattern="^[0-9a-f]{12}$")]
EvaluationIdentifier = Annotated[str, Meta(pattern="^[0-9a-f]{12}$", description="Of a job.")]
Number = Annotated[float, Meta(ge=-1e30, le=1e30)]


class Message(msgspec.Struct, forbid_unknown_fields=True):
    """The base of all requests."""


class Decide(Message):
    """A request for a decision; the context may be left out if the bandit has none."""

    context: dict[str, float | str | None] | None = None
    id: Identifier | None = None
    eligible: list[Name] | dict[str, list[Name]] | None = None
    activate: bool = True
    unit: Identifier | None = None


class DecideMany(Message):
    """A request for several decisions, of which all are made or none."""

    requests: Annotated[list[Decide], Meta(min_length=1, max_length=MAX_REQUESTS_PER_CALL)]


class Reward(Message):
    """The reward of a decision; if a decision has several rewards, each needs its own key.

    If rewards were declared with names, ``name`` is the name of this one, or ``value`` is a table
    of names; the key is then the name, unless one is given. If every slot has a reward, ``slot`` is
    the slot, or ``value`` is a table of slots or a list with a number for each slot.
    """

    id: Identifier
    value: Number | dict[str, Number] | list[Number]
    key: Identifier | None = None
    name: Name | None = None
    slot: Name | None = None


class RewardMany(Message):
    """Several rewards, of which all are recorded or none."""

    rewards: Annotated[list[Reward], Meta(min_length=1, max_length=MAX_REQUESTS_PER_CALL)]


class Activate(Message):
    """Confirms a decision that was made with ``activate`` = false: its action was carried out."""

    id: Identifier


def _create_message() -> type[msgspec.Struct]:
    """The message that declares a bandit: its name, and the words of a declaration.

    All but name and actions may be left out, or be null, which means the same for most: a
    ``default_reward`` of null is a value of its own.
    """
    fields: list[Any] = [("name", BanditName), ("actions", DECLARED_TYPES["actions"])]
    fields += [
        (word, hint | None | msgspec.UnsetType, msgspec.UNSET)
        for word, hint in DECLARED_TYPES.items()
        if word != "actions" and word not in MEMORY_ONLY
    ]
    documentation = {"__doc__": "A bandit to be declared."}
    return msgspec.defstruct(
        "Create", fields, bases=(Message,), module=__name__, namespace=documentation, kw_only=True
    )


Create = _create_message()


def _set_message() -> type[msgspec.Struct]:
    """The message that changes settings: the words of a declaration, but for the actions.

    A word that is left out stays as it is; null stands for the default.
    """
    rails: list[Any] = [
        (field.name, field.type | None | msgspec.UnsetType, msgspec.UNSET)
        for field in msgspec.structs.fields(GuardRails)
    ]
    guard_rails = msgspec.defstruct(
        "ChangedGuardRails",
        rails,
        bases=(Message,),
        module=__name__,
        namespace={"__doc__": "Guard rails to be changed; others stay as they are."},
        kw_only=True,
    )
    types = {**DECLARED_TYPES, "guard_rails": guard_rails}
    fields: list[Any] = [
        (word, hint | None | msgspec.UnsetType, msgspec.UNSET)
        for word, hint in types.items()
        if word not in ("actions", "action_features", *MEMORY_ONLY)
    ]
    documentation = {"__doc__": "Settings to be changed; others stay as they are."}
    return msgspec.defstruct(
        "Set", fields, bases=(Message,), module=__name__, namespace=documentation, kw_only=True
    )


Set = _set_message()


class ChangeChoice(Message):
    """A change to an arm, or to a choice of a slot: add, pause, resume or retire it.

    If the other choices have ``features``, a new one must have the same ones.
    """

    verb: Literal["add", "pause", "resume", "retire"]
    choice: Name
    slot: Annotated[str, Meta(max_length=200)] = ""
    features: ChoiceFeatures = {}


class Publish(Message):
    """The version that decides and is held; without a version, the newest and later ones decide."""

    version: Annotated[int, Meta(ge=0, le=2**53)] | None = None


class SetShadow(Message):
    """A second policy that decides beside the first, by its name or as a table; null for none."""

    policy: str | dict[str, Any] | None


class NewEvaluation(Message):
    """Policies to evaluate on the log of a bandit, each by its name or as a table.

    A name may have a variant, such as linucb@greedy.
    """

    policies: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=200)] | dict[str, Any]],
        Meta(min_length=1, max_length=4),
    ]


class NewKey(Message):
    """A new key: its scopes, its bandits (all if left out), and its requests a second.

    ``name`` is shown in lists and in the audit. From ``expires`` on, a date or a time in the form
    of ISO 8601, the key is refused. A ``browser`` key may be part of web pages of declared origins;
    it may have the scopes decide and reward.
    """

    scopes: Annotated[list[Scope], Meta(min_length=1, max_length=4)]
    bandits: Annotated[list[BanditName], Meta(min_length=1, max_length=1000)] | None = None
    rate: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    name: Annotated[str, Meta(max_length=MAX_NAME_LENGTH)] = ""
    expires: Annotated[str, Meta(max_length=40)] | None = None
    browser: bool = False


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
    are sentences about what should be looked at. ``shadow`` is the policy of the shadow, null
    without one. ``alarms``: active alarms by kind.
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
    shadow: Any
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
