"""What clients send and receive over HTTP, and what is wrong with a body that does not fit.

Unknown fields and wrong types are refused. The description in OpenAPI is made from these types.
"""

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType, inspect

from submax.bandit.arms import ArmStatus
from submax.bandit.decision import Decision, LiftReport, Receipt
from submax.bandit.declaring import AuditLine, StoredVersion
from submax.bandit.durable import MAX_REQUESTS_PER_CALL, DurableBandit
from submax.bandit.guard_rails import LONGEST_RAMP, GuardRails
from submax.bandit.reading import Condition, ListedDecision
from submax.bandit.settings import DECLARED_TYPES, MEMORY_ONLY, ChoiceFeatures, Name
from submax.core.checks import did_you_mean
from submax.core.decoding import known_type
from submax.core.errors import InputError
from submax.schema.context import Field, Number
from submax.server.keys import MAX_NAME_LENGTH, Key, Scope, time_text
from submax.server.limits import check_depth, check_unique_keys

IDENTIFIER_PATTERN, NAME_PATTERN = "^[!-~]{1,128}$", "^[a-z0-9][a-z0-9_-]{0,63}$"
Identifier = Annotated[str, Meta(pattern=IDENTIFIER_PATTERN, min_length=1, max_length=128)]
BanditName = Annotated[str, Meta(pattern=NAME_PATTERN, max_length=64)]
KeyIdentifier = Annotated[str, Meta(pattern="^[0-9a-f]{12}$")]
RewardNumber = Annotated[float, Meta(ge=-1e30, le=1e30)]
PATTERNS = {
    IDENTIFIER_PATTERN: "1 to 128 printable ASCII characters without spaces",
    NAME_PATTERN: "up to 64 small letters, digits, '-' and '_'",
}
"""What the patterns of texts allow, in words."""


class Body(msgspec.Struct, forbid_unknown_fields=True):
    """The base of all bodies of requests."""


class Decide(Body):
    """A request for a decision."""

    context: Annotated[
        dict[str, float | str | None] | None,
        Meta(description="The fields of the context; left out if the bandit has none."),
    ] = None
    id: Annotated[
        Identifier | None,
        Meta(description="The id of the decision: the same id again gives the same decision."),
    ] = None
    eligible: Annotated[
        list[Name] | dict[str, list[Name]] | None,
        Meta(description="The arms that may be chosen, or a table of slots with their choices."),
    ] = None
    activate: Annotated[
        bool,
        Meta(description="If false, the decision is learned from only if it is activated in time."),
    ] = True
    unit: Annotated[
        Identifier | None, Meta(description="The visitor or customer for whom it is made.")
    ] = None


class DecideMany(Body):
    """Several decisions, of which all are made or none."""

    requests: Annotated[list[Decide], Meta(min_length=1, max_length=MAX_REQUESTS_PER_CALL)]


class Reward(Body):
    """The reward of a decision; if a decision has several rewards, each needs its own key."""

    id: Annotated[Identifier, Meta(description="The id of the decision.")]
    value: Annotated[
        RewardNumber | dict[str, RewardNumber] | list[RewardNumber],
        Meta(
            description="The reward; or a table of named rewards or of slots, or a list with a "
            "number for each slot."
        ),
    ]
    key: Annotated[
        Identifier | None,
        Meta(description="Tells several rewards of a decision apart; the name if left out."),
    ] = None
    name: Annotated[Name | None, Meta(description="Which of the declared rewards it is.")] = None
    slot: Annotated[
        Name | None, Meta(description="The slot that is rewarded, if each has a reward.")
    ] = None


class RewardMany(Body):
    """Several rewards, of which all are recorded or none."""

    rewards: Annotated[list[Reward], Meta(min_length=1, max_length=MAX_REQUESTS_PER_CALL)]


class Activate(Body):
    """Confirms a decision that was made with ``activate`` = false: its action was carried out."""

    id: Identifier


def _declaration(
    name: str, doc: str, required: Sequence[tuple[str, Any]], left_out: Sequence[str], **types: Any
) -> Any:
    """A message with the words of a declaration, all of which may be left out or be null."""
    words: list[Any] = [
        (word, hint | None | UnsetType, UNSET)
        for word, hint in {**DECLARED_TYPES, **types}.items()
        if word not in left_out and word not in MEMORY_ONLY
    ]
    return msgspec.defstruct(
        name,
        [*required, *words],
        bases=(Body,),
        module=__name__,
        namespace={"__doc__": doc},
        kw_only=True,
    )


ChangedGuardRails = msgspec.defstruct(
    "ChangedGuardRails",
    [
        (field.name, field.type | None | UnsetType, UNSET)
        for field in msgspec.structs.fields(GuardRails)
    ],
    bases=(Body,),
    module=__name__,
    namespace={"__doc__": "Guard rails to be changed; others stay as they are."},
    kw_only=True,
)
Create = _declaration(
    "Create",
    "A bandit to be declared. All but name and actions may be left out.",
    [("name", BanditName), ("actions", DECLARED_TYPES["actions"])],
    ["actions"],
)
Set = _declaration(
    "Set",
    "Settings to be changed; those that are left out stay as they are, and null is the default.",
    [],
    ["actions", "action_features"],
    guard_rails=ChangedGuardRails,
)


class ChangeChoice(Body):
    """A change to an arm, or to a choice of a slot."""

    verb: Literal["add", "pause", "resume", "retire"]
    choice: Name
    slot: Annotated[
        str, Meta(max_length=200, description="The slot of the choice; empty for plain arms.")
    ] = ""
    features: Annotated[
        ChoiceFeatures,
        Meta(description="Those of a new choice, if the other choices have features."),
    ] = {}
    ramp: Annotated[
        Annotated[int, Meta(ge=0, le=LONGEST_RAMP)] | None,
        Meta(description="Decisions over which a new choice is ramped up; 0 for no ramp."),
    ] = None


class Publish(Body):
    """The version that decides and is held; without a version, the newest and later ones decide."""

    version: Annotated[int, Meta(ge=0, le=2**53)] | None = None


class Erase(Body):
    """Deletes all decisions and rewards of a unit."""

    unit: Identifier
    anonymous: Annotated[
        bool, Meta(description="Keep the decisions, and delete only the name of the unit.")
    ] = False


class NewKey(Body):
    """A new key."""

    scopes: Annotated[list[Scope], Meta(min_length=1, max_length=4)]
    bandits: Annotated[
        Annotated[list[BanditName], Meta(min_length=1, max_length=1000)] | None,
        Meta(description="The bandits that it is for; all if left out."),
    ] = None
    rate: Annotated[
        Annotated[float, Meta(gt=0, le=1e9)] | None, Meta(description="Requests a second.")
    ] = None
    name: Annotated[
        str, Meta(max_length=MAX_NAME_LENGTH, description="Shown in lists and in the audit.")
    ] = ""
    expires: Annotated[
        Annotated[str, Meta(max_length=40)] | None,
        Meta(description="A date or a time in ISO 8601, from which on the key is refused."),
    ] = None
    browser: Annotated[
        bool, Meta(description="Whether it may be part of web pages, where everybody can read it.")
    ] = False
    origins: Annotated[
        Annotated[list[Annotated[str, Meta(max_length=300)]], Meta(min_length=1, max_length=100)]
        | None,
        Meta(description="The sites whose pages may use a browser key."),
    ] = None


# Answers


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


class ListedDecisions(msgspec.Struct, frozen=True):
    """The newest decisions, newest first."""

    decisions: list[ListedDecision]


class ChoiceDetails(msgspec.Struct, frozen=True, omit_defaults=True):
    """A choice with its status: active, paused or retired; and its features, if it has any."""

    choice: str
    status: str
    features: dict[str, float | str] = {}


class BanditDetails(msgspec.Struct, frozen=True):
    """A bandit with its settings and counts; plain arms are one slot with an empty name.

    ``context_ignored``: there is a context, and the policy does not use it. ``failures``: how often
    something failed since the server was started, and the bandit went on, by kind of failure.
    ``arms`` are the choices with their decisions, reward rates and probabilities, ``notices`` are
    sentences about what should be looked at, and ``conditions`` deserve an alarm.
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
    arms: list[ArmStatus]
    notices: list[str]
    conditions: list[Condition]

    @classmethod
    def of(cls, bandit: DurableBandit) -> "BanditDetails":
        """The message that describes a bandit."""
        settings, menu = bandit.settings, bandit.menu
        actions: dict[str, list[ChoiceDetails | float]] = {
            slot.name: [ChoiceDetails(one.name, one.status, one.features) for one in slot.choices]
            for slot in menu.slots
        }
        for interval in menu.ranges:
            actions[interval.name] = [interval.low, interval.high]
        fields = zip(settings.context.names, settings.context.fields, strict=True)
        return cls(
            name=bandit.name,
            actions=actions,
            context={name: _field(field) for name, field in fields},
            policy=settings.policy,
            context_ignored=bool(settings.context.width) and not bandit.policy.traits.uses_context,
            rewards=settings.rewards,
            combine=settings.combine,
            reward_wait=settings.reward_wait,
            no_reward_after=settings.no_reward_after,
            default_reward=settings.default_reward,
            guard_rails=settings.guard_rails,
            version=bandit.version,
            held=bandit.held,
            counts=bandit.counts(),
            failures=bandit.failures,
            status=settings.status,
            sticky=settings.sticky,
            quarantine=settings.quarantine,
            refit_rows=settings.refit_rows,
            refit_seconds=settings.refit_seconds,
            seed=settings.seed,
            keep_versions=settings.keep_versions,
            arms=bandit.arms(),
            notices=bandit.notices(),
            conditions=bandit.conditions(),
        )


def _field(field: Field) -> Any:
    if isinstance(field, Number):
        return {"type": "number", "default": field.default}
    return {"type": "category", "values": list(field.values), "default": field.default}


class Lifts(msgspec.Struct, frozen=True):
    """The lift of a bandit over its holdout and over its control, as far as they are declared."""

    lifts: list[LiftReport]


class Bandits(msgspec.Struct, frozen=True):
    """The names of all bandits."""

    bandits: list[str]


class Versions(msgspec.Struct, frozen=True):
    """All versions, and the one that decides."""

    versions: list[StoredVersion]
    deciding: int
    held: bool


class Deciding(msgspec.Struct, frozen=True):
    """The version that decides now."""

    version: int


class Erased(msgspec.Struct, frozen=True):
    """How many decisions were erased."""

    decisions: int


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
    origins: list[str] | None = None

    @classmethod
    def of(cls, key: Key, used: float | None) -> "KeyDetails":
        """The message that describes a key."""
        return cls(
            key.id,
            key.name,
            list(key.scopes),
            None if key.bandits is None else list(key.bandits),
            key.rate,
            None if key.expires is None else time_text(key.expires),
            None if used is None else time_text(used),
            key.browser,
            None if key.origins is None else list(key.origins),
        )


class KeyMade(msgspec.Struct, frozen=True):
    """A new key; this is the only answer that has its text."""

    id: str
    key: str


class KeyList(msgspec.Struct, frozen=True):
    """All keys."""

    keys: list[KeyDetails]


class AuditedChange(msgspec.Struct, frozen=True):
    """A change: who made it (the id and the name of a key), when, and what was changed.

    ``subject`` is a bandit or the id of a key, and ``detail`` is the beginning of the change.
    """

    at: str
    key: str
    name: str
    operation: str
    subject: str
    detail: str

    @classmethod
    def of(cls, line: AuditLine) -> "AuditedChange":
        """The message that describes a line of the audit."""
        at = time_text(line.at)
        return cls(at, line.key, line.name, line.action, line.subject, line.detail)


class Audit(msgspec.Struct, frozen=True):
    """The last changes, newest first."""

    changes: list[AuditedChange]


class SignedIn(msgspec.Struct, frozen=True):
    """The name and the scopes of the key of a session."""

    name: str
    scopes: list[str]


# What is wrong with a body


class Decoder:
    """Decodes JSON into a message of one type; wrong bodies raise an ``InputError``."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(known_type(kind))

    def decode(self, body: bytes) -> Any:
        """The message; unknown fields, wrong types and repeated keys are refused."""
        check_depth(body)
        try:
            message = self._decoder.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise self._explained(body, error) from error
        check_unique_keys(body)
        return message

    def _explained(self, body: bytes, error: Exception) -> InputError:
        """The error in words, and the field that it is about."""
        try:
            value = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as reason:
            return InputError(f"the body is no JSON ({reason}): send a JSON object")
        found = _problem(value, inspect.type_info(self._kind), "")
        if found is None:
            return InputError(f"the body does not fit ({error}): see /openapi.json")
        place, sentence = found
        return InputError(sentence, parameter=place or None)


Problem = tuple[str, str]
"""Where in a body something is wrong, and a sentence that says what."""


def _problem(value: Any, kind: inspect.Type, place: str) -> Problem | None:
    """What is wrong with a value of this type; None if nothing is found."""
    what = repr(place) if place else "the body"
    if isinstance(kind, inspect.Metadata):
        return _problem(value, kind.type, place)
    if isinstance(kind, inspect.UnionType):
        problems = [_problem(value, each, place) for each in kind.types]
        if None in problems:
            return None
        # What is wrong inside a value says more than that it has the wrong type.
        inner = [problem for problem in problems if problem and problem[0] != place]
        if inner:
            return inner[0]
        suitable = [
            p for p, each in zip(problems, kind.types, strict=True) if _is_json(value, each)
        ]
        # Whoever sends a text for a number need not hear of lists.
        likely = [each for each in kind.types if _is_simple(each)]
        likely = likely if likely and not isinstance(value, (dict, list)) else [*kind.types]
        names = " or ".join(dict.fromkeys(_name(each) for each in likely))
        return suitable[0] if suitable else (place, f"{what} must be {names}, not {_said(value)}")
    if isinstance(kind, inspect.AnyType) or type(kind) not in KINDS:
        return None
    if not _is_json(value, kind):
        return place, f"{what} must be {_name(kind)}, not {_said(value)}"
    if isinstance(kind, inspect.LiteralType):
        if value in kind.values:
            return None
        allowed = sorted(map(str, kind.values))
        hint = did_you_mean(str(value)[:60], allowed)
        return (
            place,
            f"{what} is {value!r:.60}, which is not known: {hint}allowed: {', '.join(allowed)}",
        )
    if isinstance(kind, inspect.StrType):
        return _text_problem(value, kind, place, what)
    if isinstance(kind, (inspect.IntType, inspect.FloatType)):
        return _number_problem(value, kind, place, what)
    if isinstance(kind, inspect.StructType):
        return _struct_problem(value, kind, place, what)
    if isinstance(kind, inspect.ListType):
        if problem := _length_problem(len(value), kind, place, what, "items"):
            return problem
        inside = ((each, kind.item_type, f"{place}[{i}]") for i, each in enumerate(value))
        return next(filter(None, (_problem(*each) for each in inside)), None)
    if isinstance(kind, inspect.DictType):
        inside = ((v, kind.value_type, _inside(place, k)) for k, v in value.items())
        return next(filter(None, (_problem(*each) for each in inside)), None)
    return None


def _inside(place: str, name: str) -> str:
    return f"{place}.{name[:60]}" if place else name[:60]


def _struct_problem(value: Any, kind: inspect.StructType, place: str, what: str) -> Problem | None:
    fields = {field.encode_name: field for field in kind.fields}
    for word in value:
        if word not in fields:
            hint = did_you_mean(word[:60], sorted(fields))
            allowed = ", ".join(sorted(fields)) or "none"
            sentence = (
                f"{what} has the field {word!r:.60}, which is not known: {hint}allowed: {allowed}"
            )
            return _inside(place, word), sentence
    for name, field in fields.items():
        if name not in value:
            if field.required:
                return _inside(place, name), f"{what} lacks the field {name!r}: send it"
            continue
        if problem := _problem(value[name], field.type, _inside(place, name)):
            return problem
    return None


def _text_problem(value: str, kind: inspect.StrType, place: str, what: str) -> Problem | None:
    if kind.pattern is not None and not re.search(kind.pattern, value):
        allowed = PATTERNS.get(kind.pattern, f"a text that matches {kind.pattern}")
        return place, f"{what} is {value!r:.60}, and {allowed} are allowed: send such a text"
    return _length_problem(len(value), kind, place, what, "characters")


def _length_problem(size: int, kind: Any, place: str, what: str, of: str) -> Problem | None:
    low, high = kind.min_length or 0, kind.max_length
    if low <= size and (high is None or size <= high):
        return None
    bounds = f"{low} to {high}" if high is not None else f"{low} or more"
    return place, f"{what} has {size} {of}, and {bounds} are allowed"


def _number_problem(value: Any, kind: Any, place: str, what: str) -> Problem | None:
    bounds = [
        (kind.ge is not None and value < kind.ge, f"at least {kind.ge}"),
        (kind.gt is not None and value <= kind.gt, f"greater than {kind.gt}"),
        (kind.le is not None and value > kind.le, f"at most {kind.le}"),
        (kind.lt is not None and value >= kind.lt, f"less than {kind.lt}"),
    ]
    for broken, allowed in bounds:
        if broken:
            return place, f"{what} must be {allowed}, not {value!r:.60}"
    return None


KINDS: dict[type[inspect.Type], tuple[str, type | tuple[type, ...]]] = {
    inspect.NoneType: ("null", type(None)),
    inspect.BoolType: ("true or false", bool),
    inspect.IntType: ("a whole number", int),
    inspect.FloatType: ("a number", (int, float)),
    inspect.StrType: ("a text", str),
    inspect.LiteralType: ("a text", (str, int)),
    inspect.ListType: ("a list", list),
    inspect.DictType: ("an object", dict),
    inspect.StructType: ("an object", dict),
}
"""What values of the types of messages are called, and how JSON has them."""


def _is_json(value: Any, kind: inspect.Type) -> bool:
    """Whether a decoded value has the JSON type that a type of a message has."""
    kind = kind.type if isinstance(kind, inspect.Metadata) else kind
    _, types = KINDS.get(type(kind), ("", object))
    if isinstance(value, bool) and not isinstance(kind, inspect.BoolType):
        return types is object
    return isinstance(value, types)


def _is_simple(kind: inspect.Type) -> bool:
    """Whether values of a type are no lists or objects, and not null."""
    kind = kind.type if isinstance(kind, inspect.Metadata) else kind
    _, types = KINDS.get(type(kind), ("", dict))
    return types not in (dict, list, type(None))


def _name(kind: inspect.Type) -> str:
    kind = kind.type if isinstance(kind, inspect.Metadata) else kind
    return KINDS.get(type(kind), ("another value", object))[0]


def _said(value: Any) -> str:
    """A wrong value, shortly."""
    if isinstance(value, (dict, list)):
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, str):
        return f"the text {value!r:.60}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return f"{value!r:.60}"
