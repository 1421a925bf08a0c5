"""The bodies of events. Fields may be added at the end, with a default; none may change place."""

from typing import Any, TypeVar

import msgspec

from submax.core.errors import InputError
from submax.live.store.event import Event
from submax.schema.context_schema import Value
from submax.schema.menu import Row, Shown
from submax.schema.model import EXPECTED

DECISION, REWARD, ACTIVATION, TICK = "decision", "reward", "activation", "tick"
DECLARED, CHANGED, CHOICE, VERSION, PUBLISHED, HISTORY = (
    "declared",
    "changed",
    "choice",
    "version",
    "published",
    "history",
)
Body = TypeVar("Body")


class DecisionMade(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A decision as it was drawn.

    ``shown`` are the choices that were eligible, by slot; ``probabilities`` those of their joint
    actions, the last slot fastest, None where there are too many to be kept or no list of them.
    """

    action: Row
    propensity: float
    version: int
    context: list[Value]
    shown: Shown
    probabilities: list[float] | None
    activated: bool
    holdout: bool


class RewardGiven(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A reward."""

    value: float


class Fitted(msgspec.Struct, frozen=True):
    """A version: what it learned from, and the hash of its model.

    It learned from ``rows`` decisions with positions up to ``learned``, the log being read up to
    ``read``; ``rows_hash`` is the hash of these rows, ``ahead`` how many decisions it expected to
    be taken before they are learned from.
    """

    version: int
    model: str
    policy: str | dict[str, Any]
    rows: int
    learned: int
    read: int
    rows_hash: str
    seed: int
    shown: Shown
    ahead: int = EXPECTED


class History(msgspec.Struct, frozen=True):
    """What was learned before the first decision: so many rows of a log, and a model.

    ``segments`` are the hashes of the rows' parts, ``log`` and ``model`` hashes too. Of the rows,
    ``without_propensity`` have none; ``estimated_propensities`` were guessed when it was learned.
    """

    rows: int
    segments: list[str]
    log: str
    model: str
    without_propensity: int = 0
    estimated_propensities: int = 0


class Published(msgspec.Struct, frozen=True):
    """The version that decides from now on; ``held`` where a person chose it.

    With the hash of a ``model`` it was published by itself: that is void while a version is held,
    and where the version turned out to be another process's.
    """

    version: int
    held: bool = False
    model: str | None = None


def body_of(event: Event, kind: type[Body]) -> Body:
    """The record of an event."""
    try:
        return msgspec.msgpack.decode(event.body, type=kind)
    except msgspec.DecodeError as error:
        raise InputError(
            f"event {event.position} of the store is damaged or from a newer submax: {error}"
        ) from error


def decision_key(identifier: str) -> str:
    """The key of a decision."""
    return f"d {identifier}"


def identifier_of(key: str) -> str:
    """The id of the decision with this key."""
    return key[2:]


def reward_key(identifier: str, key: str) -> str:
    """The key of a reward; neither part holds a space."""
    return f"r {identifier} {key}"


def activation_key(identifier: str) -> str:
    """The key of an activation."""
    return f"a {identifier}"
