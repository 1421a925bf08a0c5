"""Events as rows of the table of events in SQLite."""

import struct
from collections.abc import Sequence
from typing import Any

from submax.core.errors import InputError
from submax.live.store.event import Event
from submax.live.store.integrity.sealed_event import SealedEvent
from submax.live.store.sqlite_format.event_record import checked_event, record_of, sealed_event
from submax.live.store.sqlite_format.packed_key import packed

POSITION_BITS = 40
"""Bits of a position in ``place``: a stream could get a million events a second for 12 days."""
LAST_POSITION = (1 << POSITION_BITS) - 1
"""The highest position of an event; a higher number would mean the next stream."""
LONGEST_KEY = (1 << 16) - 1
"""The most bytes of a key, whose number has 16 bits in a record."""
SEALED_ROW = "name, position, key_bytes, record"
"""The columns of ``sealed_of``."""
INSERT = "INSERT INTO events (place, key_bytes, record) VALUES (?, ?, ?)"


def place_of(number: int, position: int) -> int:
    """Return the row id of an event: events of one stream are neighbours, in order of position."""
    if position > LAST_POSITION:
        raise InputError(
            f"an event would get position {position}, and {LAST_POSITION} is the last one of a "
            "store: go on with a new store"
        )
    return number << POSITION_BITS | position


def stored_row(number: int, sealed: SealedEvent) -> tuple[int, int | None, bytes]:
    """Return the values of ``INSERT``; ``number`` is that of the event's stream."""
    key = packed(sealed.event.key)
    size = None if key is None else len(key)
    if size is not None and size > LONGEST_KEY:
        raise InputError(
            f"the key of an event has {size} bytes, and {LONGEST_KEY} are allowed: use a shorter id"
        )
    return place_of(number, sealed.event.position), size, record_of(sealed, key)


def event_of(record: bytes) -> Event:
    """Return the event in a record; an ``InputError`` if it is damaged."""
    try:
        return sealed_event("", record).event
    except (ValueError, TypeError, struct.error) as error:
        raise damaged_record(error) from error


def events_of(rows: Sequence[tuple[bytes]]) -> list[Event]:
    """Return the events in rows of records."""
    return [event_of(record) for (record,) in rows]


def sealed_of(row: tuple[Any, ...]) -> SealedEvent:
    """Return the event in a row of ``SEALED_ROW``, damaged or not."""
    return checked_event(*row)


def damaged_record(error: Exception) -> InputError:
    """Return the error of a record that cannot be read."""
    return InputError(
        f"an event of the store is damaged ({error}): run submax doctor, or restore a backup"
    )
