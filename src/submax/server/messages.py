"""What clients send and receive over HTTP, and what is wrong with a body that does not fit.

Unknown fields and wrong types are refused. The description in OpenAPI is made from these types.
"""

import contextlib
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec import UNSET, Meta, UnsetType

from submax.bandit.arms import ArmStatus
from submax.bandit.conditions import Condition
from submax.bandit.decision import Decision, LiftReport, Receipt
from submax.bandit.declaring import AuditLine, StoredVersion
from submax.bandit.durable import MAX_REQUESTS_PER_CALL, DurableBandit
from submax.bandit.guard_rails import LONGEST_RAMP, GuardRails
from submax.bandit.settings import DECLARED_TYPES, SETTING_TYPES, ChoiceFeatures, Name
from submax.core.checks import one_of, wrong_type
from submax.core.decoding import known_type
from submax.core.errors import InputError
from submax.server.keys import MAX_NAME_LENGTH, Key, Scope

IDENTIFIER, BANDIT_NAME = "^[!-~]{1,128}$", "^[a-z0-9][a-z0-9_-]{0,63}$"
MEANINGS = (
    (IDENTIFIER, "of 1 to 128 printable ASCII characters without spaces"),
    (BANDIT_NAME, "of up to 64 lower-case letters, digits, '-' and '_'"),
)
Identifier = Annotated[str, Meta(pattern=IDENTIFIER, min_length=1, max_length=128)]
BanditName = Annotated[str, Meta(pattern=BANDIT_NAME, max_length=64)]
KeyIdentifier = Annotated[str, Meta(pattern="^[0-9a-f]{12}$")]
RewardNumber = Annotated[float, Meta(ge=-1e30, le=1e30)]
Many = Meta(min_length=1, max_length=MAX_REQUESTS_PER_CALL)


class Body(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The base of all bodies of requests."""


def _about(kind: Any, description: str) -> Any:
    return Annotated[kind, Meta(description=description)]


def _body(name: str, doc: str, *fields: Any, base: Any = Body) -> Any:
    about = {"__doc__": doc}
    return msgspec.defstruct(
        name, fields, bases=(base,), module=__name__, namespace=about, frozen=True
    )


def _answer(name: str, doc: str, /, **fields: Any) -> Any:
    return _body(name, doc, *fields.items(), base=msgspec.Struct)


Decide: Any = _body(
    "Decide",
    "A request for a decision.",
    ("context", _about(
        dict[str, float | str | None] | None,
        "The fields of the context; left out if the bandit has none."), None),
    ("id", _about(
        Identifier | None,
        "The id of the decision: the same id again gives the same decision."), None),
    ("eligible", _about(
        list[Name] | dict[str, list[Name]] | None,
        "The arms that may be chosen, or a table of slots with their choices."), None),
    ("activate", _about(
        bool, "If false, the decision is learned from only if it is activated in time."), True),
    ("unit", _about(Identifier | None, "The visitor or customer to decide for."), None),
)  # fmt: skip
Reward: Any = _body(
    "Reward",
    "The reward of a decision; if a decision has several rewards, each needs its own key.",
    ("id", _about(Identifier, "The id of the decision.")),
    ("value", _about(
        RewardNumber | dict[str, RewardNumber] | list[RewardNumber],
        "The reward; or a table of named rewards or of slots, or a list with a number for each "
        "slot.")),
    ("key", _about(
        Identifier | None,
        "Distinguishes several rewards of a decision; by default the name."), None),
    ("name", _about(Name | None, "Which declared reward this is."), None),
    ("slot", _about(Name | None, "The slot that is rewarded, if each has a reward."), None),
)  # fmt: skip
DecideMany = _body(
    "DecideMany", "Several decisions: all of them are made, or none.",
    ("requests", Annotated[list[Decide], Many]),
)  # fmt: skip
RewardMany = _body(
    "RewardMany", "Several rewards: all of them are recorded, or none.",
    ("rewards", Annotated[list[Reward], Many]),
)  # fmt: skip
Activate = _body(
    "Activate",
    "Confirms a decision that was made with ``activate`` = false: its action was carried out.",
    ("id", Identifier),
)


def _optional(types: Mapping[str, Any], *left_out: str) -> list[tuple[str, Any, Any]]:
    """Fields that may all be left out or be null."""
    shown = {word: hint for word, hint in types.items() if word not in left_out}
    return [(word, hint | None | UnsetType, UNSET) for word, hint in shown.items()]


ChangedGuardRails = _body(
    "ChangedGuardRails", "Guard rails to change; others stay as they are.",
    *_optional({field.name: field.type for field in msgspec.structs.fields(GuardRails)}),
)  # fmt: skip
Create = _body(
    "Create", "A bandit to declare. All fields but name and actions are optional.",
    ("name", BanditName), ("actions", DECLARED_TYPES["actions"]),
    *_optional(DECLARED_TYPES, "actions"),
)  # fmt: skip
Set = _body(
    "Set",
    "Settings to change; those that are left out stay as they are, and null restores a default.",
    *_optional({**DECLARED_TYPES, "guard_rails": ChangedGuardRails}, "actions", "action_features"),
)
ChangeChoice = _body(
    "ChangeChoice",
    "A change to an arm, or to a choice of a slot.",
    ("verb", Literal["add", "pause", "resume", "retire"]),
    ("choice", Name),
    ("slot", Annotated[str, Meta(
        max_length=200, description="The slot of the choice; empty for plain arms.")], ""),
    ("features", _about(
        ChoiceFeatures, "The features of a new choice, if the other choices have any."), {}),
    ("ramp", _about(
        Annotated[int, Meta(ge=0, le=LONGEST_RAMP)] | None,
        "Decisions over which a new choice is ramped up; 0 for no ramp."), None),
)  # fmt: skip
Publish = _body(
    "Publish",
    "The version to make live and hold; without one, the newest version is followed.",
    ("version", Annotated[int, Meta(ge=0, le=2**53)] | None, None),
)
Erase = _body(
    "Erase", "Deletes all decisions and rewards of a unit.", ("unit", Identifier),
    ("anonymous", _about(bool, "Keep the decisions, and delete only the name of the unit."), False),
)  # fmt: skip
NewKey = _body(
    "NewKey",
    "A new key.",
    ("scopes", Annotated[list[Scope], Meta(min_length=1, max_length=4)]),
    ("bandits", _about(
        Annotated[list[BanditName], Meta(min_length=1, max_length=1000)] | None,
        "The bandits that the key is for; all if left out."), None),
    ("rate", _about(Annotated[float, Meta(gt=0, le=1e9)] | None, "Requests per second."), None),
    ("name", Annotated[str, Meta(
        max_length=MAX_NAME_LENGTH, description="Shown in lists and in the audit.")], ""),
    ("expires", _about(
        Annotated[str, Meta(max_length=40)] | None,
        "A date or a time in ISO 8601, after which the key is refused."), None),
    ("origins", _about(
        Annotated[list[Annotated[str, Meta(max_length=300)]], Meta(min_length=1, max_length=100)]
        | None, "The sites whose pages contain the key, where anyone can read it."), None),
)  # fmt: skip


# Answers


class Failure(msgspec.Struct, frozen=True):
    """An error: one sentence for people, and a code for programs. Nothing was changed."""

    error: str
    code: str


Health = _answer("Health", "The state of the server.", status=str)
Decisions = _answer(
    "Decisions", "Decisions in the order of the requests.", decisions=list[Decision]
)
Receipts = _answer("Receipts", "Receipts in the order of the rewards.", receipts=list[Receipt])
Lifts = _answer(
    "Lifts",
    "The lift of a bandit over its holdout and over its control, as far as they are declared.",
    lifts=list[LiftReport],
)
Bandits = _answer("Bandits", "The names of all bandits.", bandits=list[str])
Versions = _answer(
    "Versions", "All versions, and the live one.",
    versions=list[StoredVersion], deciding=int, held=bool,
)  # fmt: skip
Deciding = _answer("Deciding", "The version that is live now.", version=int)
Erased = _answer("Erased", "How many decisions were erased.", decisions=int)
KeyMade = _answer(
    "KeyMade", "A new key; this is the only answer that contains it.", id=str, key=str
)


class ChoiceDetails(msgspec.Struct, frozen=True, omit_defaults=True):
    """A choice with its status: active, paused or retired; and its features, if it has any."""

    choice: str
    status: str
    features: dict[str, float | str] = {}


BanditDetails = _answer(
    "BanditDetails",
    """A bandit with its settings and counts; plain arms are a slot without a name.

    ``context_ignored``: there is a context, but the policy does not use it. ``failures``: how often
    something failed since the server started, and the bandit continued, by kind of failure.
    ``summary`` describes the bandit for people.
    ``arms`` are the choices with their decisions, reward rates and probabilities, ``notices`` are
    sentences about what needs attention, and ``conditions`` deserve an alarm.
    """,
    name=str,
    actions=dict[str, list[ChoiceDetails | float]],
    context=dict[str, Any],
    **{name: hint for name, hint in SETTING_TYPES.items() if name != "context"},
    context_ignored=bool,
    version=int,
    held=bool,
    counts=dict[str, int],
    summary=str,
    failures=dict[str, int],
    arms=list[ArmStatus],
    notices=list[str],
    conditions=list[Condition],
)


def bandit_details(bandit: DurableBandit) -> Any:
    """The message that describes a bandit."""
    settings, menu = bandit.settings, bandit.menu
    sql = "select count(*) from early_reward where bandit = :bandit"
    ((waiting,),) = bandit.read.select(sql)
    actions: dict[str, list[ChoiceDetails | float]] = {
        slot.name: [ChoiceDetails(one.name, one.status, one.features) for one in slot.choices]
        for slot in menu.slots
    }
    actions |= {interval.name: [interval.low, interval.high] for interval in menu.ranges}
    return BanditDetails(
        name=bandit.name,
        actions=actions,
        context={name: msgspec.to_builtins(one) for name, one in settings.context.table.items()},
        **{name: getattr(settings, name) for name in SETTING_TYPES if name != "context"},
        context_ignored=bool(settings.context.width) and not bandit.policy.traits.uses_context,
        version=bandit.version,
        held=bandit.held,
        counts=bandit.counts() | {"in quarantine": waiting},
        summary=str(bandit),
        failures=bandit.failures,
        arms=bandit.arms(),
        notices=bandit.notices(),
        conditions=bandit.conditions(),
    )


KeyList = _answer("KeyList", "All keys, without their secrets.", keys=list[Key])
Audit = _answer("Audit", "The last changes, newest first.", changes=list[AuditLine])


def _words(kind: Any) -> tuple[str, ...]:
    """The words that are allowed in a field, or in a list of them.

    >>> _words(list[Literal["read", "admin"]])
    ('read', 'admin')
    """
    if get_origin(kind) is Literal:
        return get_args(kind)
    return tuple(word for one in get_args(kind) for word in _words(one))


class Decoder:
    """Decodes JSON into a message of one type; wrong bodies raise an ``InputError``.

    ``when_empty`` is what an empty body stands for: no field, if none is needed.
    """

    def __init__(self, kind: Any) -> None:
        fields = msgspec.structs.fields(kind)
        self._fields = {field.name: field.type for field in fields}
        required = any(field.required for field in fields)
        self.when_empty = b"" if required else b"{}"
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(known_type(kind))

    def decode(self, body: bytes) -> Any:
        try:
            message = self._decoder.decode(body)
        except msgspec.ValidationError as error:
            fields: dict[str, msgspec.Raw] = {}
            with contextlib.suppress(msgspec.DecodeError):
                fields = msgspec.json.decode(body, type=known_type(dict[str, msgspec.Raw]))
                for word in fields:
                    one_of("field", word[:60], self._fields)
            place, problem = wrong_type(error)
            what = repr(place) if place else "the body"
            if "enum" in problem and (words := _words(self._fields.get(place.partition("[")[0]))):
                problem = f"must be one of: {', '.join(words)}"
            for pattern, meaning in MEANINGS:
                problem = problem.replace(f"that matches {pattern!r}", meaning)
            if place in fields:
                value = bytes(fields[place]).decode(errors="replace")
                what, problem = f"{what} was {value:.60}:", f"it {problem.partition(', not ')[0]}"
            raise InputError(f"{what} {problem}") from error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(f"the body is not JSON ({error}): send a JSON object") from error
        return message
