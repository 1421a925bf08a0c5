"""Events as rows of the table of events in SQLite."""

from collections.abc import Sequence
from typing import Any

from submax.live.store.event import Event
from submax.live.store.event_columns import EventColumns
from submax.live.store.integrity.sealed_event import SealedEvent
from submax.live.store.sqlite_format.packed_key import StoredKey, packed, unpacked, unpacked_many

POSITION_BITS = 40
"""Bits of a position in ``place``: a stream could get a million events a second for 12 days."""
LAST_POSITION = (1 << POSITION_BITS) - 1
"""The highest position of an event; a higher number would mean the next stream."""
KINDS = {"reward": 0, "decision": 1, "activation": 2, "tick": 3}
"""Numbers that are stored in place of the most frequent kinds; SQLite stores 0 and 1 in no byte."""
KIND_NAMES: dict[object, str] = {number: kind for kind, number in KINDS.items()}
ABOUT_KEY = 1
"""Stored in place of ``about`` if it is the key of the decision whose id is in the event's key."""

ROW = "at, kind, key, about, about_position, about_at, body"
"""The stored columns of an event after its position, in the order of the fields of ``Event``."""
SEALED_ROW = f"name, position, {ROW}, gap, checksum"
COLUMNS_ROW = "position, at, kind, key, about, about_position, body"
"""The stored columns of an event, in the order of the fields of ``EventColumns``."""
INSERT = f"INSERT INTO events (place, {ROW}, gap, checksum) VALUES ({', '.join('?' * 10)})"


def place_of(number: int, position: int) -> int:
    """Return the row id of an event: events of one stream are neighbours, in order of position."""
    return number << POSITION_BITS | position


def stored_row(number: int, sealed: SealedEvent) -> tuple[object, ...]:
    """Return the values of ``INSERT``; ``number`` is that of the event's stream."""
    event = sealed.event
    return (
        number << POSITION_BITS | event.position,
        event.at,
        KINDS.get(event.kind, event.kind),
        packed(event.key),
        ABOUT_KEY if event.about and event.about == _decision_of(event.key) else event.about,
        event.about_position,
        event.about_at,
        event.body,
        event.position - sealed.previous,
        sealed.checksum,
    )


def event_of(row: tuple[Any, ...]) -> Event:
    """Return the event in a row of ``position`` and ``ROW``."""
    position, at, kind, stored, about, about_position, about_at, body = row
    key = unpacked(stored)
    return Event(
        position,
        at,
        KIND_NAMES.get(kind, kind),
        key,
        _decision_of(key) if about == ABOUT_KEY else about,
        about_position,
        about_at,
        body,
    )


def columns_of(rows: Sequence[tuple[Any, ...]]) -> EventColumns:
    """Return the events in rows of ``COLUMNS_ROW``."""
    if not rows:
        return EventColumns()
    position, at, kind, stored, about, about_position, body = zip(*rows, strict=True)
    keys = unpacked_many(stored)
    return EventColumns(
        position,
        at,
        [KIND_NAMES.get(one, one) for one in kind],
        keys,
        [
            one if one != ABOUT_KEY else _decision_of(key)
            for key, one in zip(keys, about, strict=True)
        ],
        about_position,
        body,
    )


def sealed_of(row: tuple[Any, ...]) -> SealedEvent:
    """Return the event in a row of ``SEALED_ROW``, damaged or not."""
    stream, *columns, gap, checksum = row
    event = event_of(tuple(columns))
    previous = event.position - gap if isinstance(gap, int) else gap
    return SealedEvent(stream, event, previous, checksum)


def _decision_of(key: StoredKey) -> str | None:
    """Return the key of the decision whose id is the second word of a key; None if there is none.

    >>> _decision_of("r visit-1 reward")
    'd visit-1'
    """
    words = key.split(" ", 2) if isinstance(key, str) else ()
    return f"d {words[1]}" if len(words) > 1 else None
