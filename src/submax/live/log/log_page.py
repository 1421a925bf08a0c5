"""A page of a bandit's log, decoded."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from submax.core.errors import InputError
from submax.live.log.records import ACTIVATION, DECISION, REWARD, DecisionMade, RewardGiven
from submax.live.store.event_columns import EventColumns
from submax.schema.menu import EncodedAction

ARRAY_HEADER = b"\xdd"
"""The first byte of a MessagePack array whose number of elements follows in four bytes."""


class ActionTaken(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The first field of ``DecisionMade``; the others are not decoded."""

    action: EncodedAction


DECISIONS = msgspec.msgpack.Decoder(list[DecisionMade])
ACTIONS = msgspec.msgpack.Decoder(list[ActionTaken])
REWARDS = msgspec.msgpack.Decoder(list[RewardGiven])


@dataclass(frozen=True, slots=True)
class LogPage:
    """Events of a log, in order; every field has one value for each event.

    ``kind`` is empty for events that say nothing about decisions. ``identifier`` is the id of the
    decision, and ``body`` is a ``DecisionMade`` (or an ``ActionTaken``), a ``RewardGiven``, or
    None.
    """

    position: Sequence[int]
    at: Sequence[float]
    kind: Sequence[str]
    identifier: Sequence[str]
    about_position: Sequence[int]
    body: Sequence[Any]

    def __len__(self) -> int:
        return len(self.position)

    @classmethod
    def of(cls, events: EventColumns, *, whole: bool = True) -> "LogPage":
        """Decode a page; without ``whole``, only the actions of decisions are decoded.

        An ``InputError`` is raised if a body is damaged.
        """
        kinds, identifiers = [], []
        for kind, key, about in zip(events.kind, events.key, events.about, strict=True):
            if kind == DECISION and key is not None:
                kinds.append(DECISION)
                identifiers.append(key[2:])
            elif about is not None and (kind == REWARD or kind == ACTIVATION):
                kinds.append(kind)
                identifiers.append(about[2:])
            else:
                kinds.append("")
                identifiers.append("")
        bodies: list[Any] = [None] * len(kinds)
        _decode(events, kinds, DECISION, DECISIONS if whole else ACTIONS, bodies)
        _decode(events, kinds, REWARD, REWARDS, bodies)
        return cls(events.position, events.at, kinds, identifiers, events.about_position, bodies)


def _decode(
    events: EventColumns,
    kinds: Sequence[str],
    kind: str,
    decoder: "msgspec.msgpack.Decoder[list[Any]]",
    bodies: list[Any],
) -> None:
    """Decode all bodies of one kind as one array, which is faster than one by one."""
    places = [place for place, one in enumerate(kinds) if one == kind]
    encoded = [events.body[place] for place in places]
    try:
        decoded = decoder.decode(_array(encoded))
    except (msgspec.DecodeError, TypeError):
        decoded = [
            _decoded(body, events.position[place], decoder)
            for place, body in zip(places, encoded, strict=True)
        ]
    for place, one in zip(places, decoded, strict=True):
        bodies[place] = one


def _decoded(
    body: bytes, position: int, decoder: "msgspec.msgpack.Decoder[list[Any]]"
) -> DecisionMade | ActionTaken | RewardGiven:
    try:
        (decoded,) = decoder.decode(_array([body]))
    except (msgspec.DecodeError, TypeError) as error:
        raise InputError(
            f"event {position} of the store is damaged or from a newer submax ({error}): install a "
            "newer submax, or restore a backup"
        ) from error
    return decoded  # type: ignore[no-any-return]  # one of the three by the decoder


def _array(encoded: Sequence[bytes]) -> bytes:
    return b"".join([ARRAY_HEADER, len(encoded).to_bytes(4), *encoded])
