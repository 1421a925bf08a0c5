"""Events as rows of the table of events in SQLite."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from submax.live.store.columns.event_columns import EventColumns
from submax.live.store.columns.event_kinds import KINDS
from submax.live.store.columns.key_column import ABOUT_KEY, KeyColumn
from submax.live.store.event import Event
from submax.live.store.integrity.sealed_event import SealedEvent
from submax.live.store.sqlite_format.packed_key import (
    decision_of,
    packed,
    unpacked,
    unpacked_many,
)

POSITION_BITS = 40
"""Bits of a position in ``place``: a stream could get a million events a second for 12 days."""
LAST_POSITION = (1 << POSITION_BITS) - 1
"""The highest position of an event; a higher number would mean the next stream."""
KIND_NAMES: dict[object, str] = {number: kind for kind, number in KINDS.items()}

ROW = "at, kind, key, about, about_position, about_at, body"
"""The stored columns of an event after its position, in the order of the fields of ``Event``."""
KEY_PLACE = 3
"""Where the key is in a row of ``position`` and ``ROW``."""
SEALED_ROW = f"name, position, {ROW}, gap, checksum"
COLUMNS_ROW = "place, at, kind, key, about, about_position, body"
"""The stored columns of an event of which ``EventColumns`` are made."""
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
        ABOUT_KEY if event.about and event.about == decision_of(event.key) else event.about,
        event.about_position,
        event.about_at,
        event.body,
        event.position - sealed.previous,
        sealed.checksum,
    )


def event_of(row: tuple[Any, ...]) -> Event:
    """Return the event in a row of ``position`` and ``ROW``."""
    return _event(row, unpacked(row[KEY_PLACE]))


def events_of(rows: Sequence[tuple[Any, ...]]) -> list[Event]:
    """Return the events in rows of ``position`` and ``ROW``, whose keys are unpacked together."""
    return [*map(_event, rows, unpacked_many([row[KEY_PLACE] for row in rows]))]


def _event(row: tuple[Any, ...], key: str | None) -> Event:
    position, at, kind, _, about, about_position, about_at, body = row
    return Event(
        position,
        at,
        KIND_NAMES.get(kind, kind),
        key,
        decision_of(key) if about == ABOUT_KEY else about,
        about_position,
        about_at,
        body,
    )


def columns_of(rows: Sequence[tuple[Any, ...]]) -> EventColumns:
    """Return the events in rows of ``COLUMNS_ROW``."""
    if not rows:
        return EventColumns.of([])
    place, at, kind, stored, about, about_position, body = zip(*rows, strict=True)
    position = np.fromiter(place, np.int64, len(rows)) & LAST_POSITION
    return EventColumns.made(position, at, kind, KeyColumn(stored, about), about_position, body)


def sealed_of(row: tuple[Any, ...]) -> SealedEvent:
    """Return the event in a row of ``SEALED_ROW``, damaged or not."""
    stream, *columns, gap, checksum = row
    event = event_of(tuple(columns))
    previous = event.position - gap if isinstance(gap, int) else gap
    return SealedEvent(stream, event, previous, checksum)
