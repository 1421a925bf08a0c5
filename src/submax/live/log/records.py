"""The bodies of events, as they are written to the store.

A new field goes to the end and has a default; the order of fields must not change.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from submax.bandit.assignment import ExperimentAssignment
from submax.core.decoding import known_type
from submax.core.errors import InputError
from submax.live.store.event import Event
from submax.schema.actions import ChoiceIndices, EncodedAction
from submax.schema.context import Value
from submax.schema.model import EXPECTED

DECISION, REWARD, ACTIVATION, TICK = "decision", "reward", "activation", "tick"
PIN = "pin"
"""The kinds of events in the log. A tick has no content: it records the time. A pin holds the
probabilities by which all decisions of a unit are drawn for a while."""
DECLARED, CHANGED, CHOICE, VERSION, PUBLISHED, HISTORY, ARCHIVED, DELETED = (
    "declared",
    "changed",
    "choice",
    "version",
    "published",
    "history",
    "archived",
    "deleted",
)
Body = TypeVar("Body")


class DecisionMade(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A decision as it was drawn.

    ``eligible`` are the indices of the eligible choices of each slot. ``probabilities`` are those
    of their joint actions, listed so that the choice of the last slot changes first; None if there
    are too many or no list of them. ``unit`` is the visitor or customer for whom it was made, None
    if the caller named none. ``group`` is None if no guard rail sets decisions apart. A decision
    that was made while the bandit was ``paused`` is not learned from.
    """

    action: EncodedAction
    propensity: float
    version: int
    context: list[Value]
    eligible: ChoiceIndices
    probabilities: list[float] | None
    activated: bool
    holdout: bool
    unit: str | None = None
    group: ExperimentAssignment | None = None
    paused: bool = False


class RewardGiven(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A reward; ``source`` is the id of the key that sent it over HTTP, empty if there was none.

    If rewards have names, or each slot has one, ``parts`` are the rewards by name, and ``value`` is
    what they are together.
    """

    value: float
    source: str = ""
    parts: dict[str, float] | None = None


class Fitted(msgspec.Struct, frozen=True):
    """A version: what it was fitted to, and the hash of its ``model``.

    It was fitted to ``rows`` decisions with positions up to ``learned``, when the log had been read
    up to position ``read``. ``rows_hash`` is the hash of the rows of its own log, ``active`` are
    the indices of the choices that were active, and ``ahead`` is how many decisions were expected
    before the next version. ``base`` is the version that this one is an update of; 0 if it was
    fitted from scratch.
    """

    version: int
    model: str
    policy: str | dict[str, Any]
    rows: int
    learned: int
    read: int
    rows_hash: str
    seed: int
    active: ChoiceIndices
    ahead: int = EXPECTED
    base: int = 0


class History(msgspec.Struct, frozen=True):
    """What a bandit had learned before its first decision: rows of a log, and a model.

    ``segments``, ``log`` and ``model`` are hashes: of each segment of the rows, of the whole log
    and of the model. ``without_propensity`` counts the rows that have no propensity, and
    ``estimated_propensities`` those whose propensity was estimated when the log was read.
    """

    rows: int
    segments: list[str]
    log: str
    model: str
    without_propensity: int = 0
    estimated_propensities: int = 0


class Published(msgspec.Struct, frozen=True):
    """The version that decides from now on; ``held`` if an operator chose it.

    ``model`` is set if the version was published automatically. An automatic publication is ignored
    while an operator holds a version, or if another process wrote this version number first.
    """

    version: int
    held: bool = False
    model: str | None = None


DECODERS: dict[Any, msgspec.msgpack.Decoder[Any]] = {}
"""Decoders of bodies by type; making one for each event would take longer than decoding it."""


def body_of(event: Event, kind: type[Body]) -> Body:
    """Decode the body of an event."""
    return decoded_body(event.body, event.position, kind)


def decoded_body(body: bytes, position: int, kind: type[Body]) -> Body:
    """Decode the body of the event at a position, which an ``InputError`` names."""
    if kind not in DECODERS:
        DECODERS[kind] = msgspec.msgpack.Decoder(known_type(kind))
    try:
        decoded: Body = DECODERS[kind].decode(body)
        return decoded
    except (msgspec.DecodeError, TypeError) as error:
        raise InputError(
            f"event {position} of the store is damaged or from a newer submax ({error}): "
            "install a newer submax, or restore a backup"
        ) from error


ARRAY_HEADER = b"\xdd"
"""The first byte of a MessagePack array whose number of elements follows in four bytes."""


def decoded_bodies(
    bodies: Sequence[bytes], positions: Sequence[int], kind: type[Body]
) -> list[Body]:
    """Decode the bodies of events as one array, which is faster than one by one.

    An ``InputError`` that names the position is raised if one is damaged.
    """
    if not bodies:
        return []
    many: Any = list[kind]  # type: ignore[valid-type]  # known when this runs
    if many not in DECODERS:
        DECODERS[many] = msgspec.msgpack.Decoder(known_type(many))
    data = b"".join([ARRAY_HEADER, len(bodies).to_bytes(4), *bodies])
    try:
        decoded: list[Body] = DECODERS[many].decode(data)
        return decoded
    except (msgspec.DecodeError, TypeError):
        return [
            decoded_body(body, position, kind)
            for body, position in zip(bodies, positions, strict=True)
        ]


def decision_key(identifier: str) -> str:
    """The key of a decision."""
    return f"d {identifier}"


def identifier_of(key: str) -> str:
    """The id of the decision with this key."""
    return key[2:]


def reward_key(identifier: str, key: str) -> str:
    """The key of a reward; neither part holds a space."""
    return f"r {identifier} {key}"


def pin_key(period: str, unit: str) -> str:
    """The key of the pin of a unit in a period; neither part holds a space."""
    return f"p {period} {unit}"


def activation_key(identifier: str) -> str:
    """The key of an activation."""
    return f"a {identifier}"
