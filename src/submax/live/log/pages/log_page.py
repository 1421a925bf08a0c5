"""A page of a bandit's log, decoded."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from submax.core.errors import InputError
from submax.live.log.pages.lean_decision import LeanDecision
from submax.live.log.records import ACTIVATION, DECISION, REWARD, RewardGiven
from submax.live.store.event_columns import EventColumns

ARRAY_HEADER = b"\xdd"
"""The first byte of a MessagePack array whose number of elements follows in four bytes."""


FEEDBACK = (REWARD, ACTIVATION)
DECISIONS = msgspec.msgpack.Decoder(list[LeanDecision])
REWARDS = msgspec.msgpack.Decoder(list[RewardGiven])


@dataclass(frozen=True, slots=True)
class LogPage:
    """Events of a log, in order; every field has one value for each event.

    ``kind`` is empty for events that say nothing about decisions. ``identifier`` is the id of the
    decision, and ``body`` is a ``LeanDecision``, a ``RewardGiven``, or None.
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
    def of(cls, events: EventColumns) -> "LogPage":
        """Decode a page; an ``InputError`` is raised if a body is damaged."""
        kinds, identifiers, decisions, rewards = [], [], [], []
        columns = zip(events.kind, events.key, events.about, strict=True)
        for place, (kind, key, about) in enumerate(columns):
            if kind == DECISION and key is not None:
                decisions.append(place)
                kinds.append(kind)
                identifiers.append(key[2:])
            elif about is not None and kind in FEEDBACK:
                if kind == REWARD:
                    rewards.append(place)
                kinds.append(kind)
                identifiers.append(about[2:])
            else:
                kinds.append("")
                identifiers.append("")
        bodies: list[Any] = [None] * len(kinds)
        _decode(events, decisions, DECISIONS, bodies)
        _decode(events, rewards, REWARDS, bodies)
        return cls(events.position, events.at, kinds, identifiers, events.about_position, bodies)


def _decode(
    events: EventColumns,
    places: Sequence[int],
    decoder: "msgspec.msgpack.Decoder[list[Any]]",
    bodies: list[Any],
) -> None:
    """Decode the bodies at some places as one array, which is faster than one by one."""
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
) -> LeanDecision | RewardGiven:
    try:
        (decoded,) = decoder.decode(_array([body]))
    except (msgspec.DecodeError, TypeError) as error:
        raise InputError(
            f"event {position} of the store is damaged or from a newer submax ({error}): install a "
            "newer submax, or restore a backup"
        ) from error
    return decoded  # type: ignore[no-any-return]  # one of the two by the decoder


def _array(encoded: Sequence[bytes]) -> bytes:
    return b"".join([ARRAY_HEADER, len(encoded).to_bytes(4), *encoded])
