"""The bodies of requests over HTTP; unknown fields and wrong types are refused."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from submax.bandit.guard_rails import LONGEST_RAMP, GuardRails
from submax.bandit.settings import DECLARED_TYPES, MEMORY_ONLY, ChoiceFeatures, Name
from submax.live.store.pending_write import MAX_REQUESTS_PER_CALL
from submax.web.server.access.key import MAX_NAME_LENGTH, Scope

IDENTIFIER_PATTERN, NAME_PATTERN = "^[!-~]{1,128}$", "^[a-z0-9][a-z0-9_-]{0,63}$"
Identifier = Annotated[str, Meta(pattern=IDENTIFIER_PATTERN, min_length=1, max_length=128)]
BanditName = Annotated[str, Meta(pattern=NAME_PATTERN, max_length=64)]
KeyIdentifier = Annotated[str, Meta(pattern="^[0-9a-f]{12}$")]
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

    If the other choices have ``features``, a new one must have the same ones. A new choice is
    ramped up over ``ramp`` decisions: null for the default, 0 for no ramp.
    """

    verb: Literal["add", "pause", "resume", "retire"]
    choice: Name
    slot: Annotated[str, Meta(max_length=200)] = ""
    features: ChoiceFeatures = {}
    ramp: Annotated[int, Meta(ge=0, le=LONGEST_RAMP)] | None = None


class Publish(Message):
    """The version that decides and is held; without a version, the newest and later ones decide."""

    version: Annotated[int, Meta(ge=0, le=2**53)] | None = None


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
