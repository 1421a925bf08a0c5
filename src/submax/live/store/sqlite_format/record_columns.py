"""Events by columns, from their records one after the other."""

import numpy as np
from numpy.typing import NDArray

from submax.live.store.columns.byte_column import ByteColumn, values_at
from submax.live.store.columns.event_columns import NO_EVENTS, EventColumns
from submax.live.store.columns.event_kinds import (
    ACTIVATION_KIND,
    DECISION_KIND,
    KINDS,
    OTHER_KIND,
    REWARD_KIND,
)
from submax.live.store.sqlite_format.event_record import (
    ABOUT,
    ABOUT_OF_KEY,
    GAP,
    HAS_ABOUT,
    HAS_ABOUT_TEXT,
    HAS_GAP,
    HAS_KEY,
    HEAD,
    HEAD_FIELDS,
    LENGTH,
)
from submax.live.store.sqlite_format.event_row import damaged_record
from submax.live.store.sqlite_format.record_keys import RecordKeys

FEWEST = 16
"""Records of one size in a row that are worth comparing at once."""
SINGLE = 256
"""Records that are passed one by one after a shorter run, before runs are looked for again."""
Places = NDArray[np.int64]


def columns_of(data: bytes | None) -> EventColumns:
    """Return the events whose records are in ``data``; an ``InputError`` if one is damaged.

    Python makes no object for any of them: numpy reads each field of all records at once.
    """
    if not data:
        return NO_EVENTS
    try:
        return _columns(data, record_places(data))
    except (IndexError, ValueError) as error:
        raise damaged_record(error) from error


def record_places(data: bytes) -> Places:
    """Return where each record begins. A record begins with its number of bytes.

    Records of one size often follow each other; they are found by one comparison.
    """
    parts: list[Places] = []
    place, end = 0, len(data)
    while place < end:
        size = _size_at(data, place)
        most = (end - place) // size
        # Fewer are compared first, because runs are short in some logs.
        count = _equal(np.ndarray((min(most, FEWEST),), "<u4", data, place, (size,)))
        if count == FEWEST:
            count = _equal(np.ndarray((most,), "<u4", data, place, (size,)))
            parts.append(place + size * np.arange(count))
            place += size * count
            continue
        single: list[int] = []
        while place < end and len(single) < SINGLE:
            single.append(place)
            place += _size_at(data, place)
        parts.append(np.array(single))
    return np.concatenate(parts)


def _size_at(data: bytes, place: int) -> int:
    """Return the size of the record at a place, all of which must be in the data."""
    (size,) = LENGTH.unpack_from(data, place) if place + HEAD.size <= len(data) else (0,)
    if size < HEAD.size or place + size > len(data):
        raise ValueError(f"a record of {size} bytes is among {len(data) - place} that are left")
    return int(size)


def _equal(sizes: NDArray[np.uint32]) -> int:
    """Return how many of the first sizes are equal."""
    different = (sizes != sizes[0]).nonzero()[0]
    return int(different[0]) if len(different) else len(sizes)


def _columns(data: bytes, begin: Places) -> EventColumns:
    head = values_at(data, f"V{HEAD.size}", begin).view(HEAD_FIELDS)
    flags, kind, end = head["flags"], head["kind"].copy(), begin + head["size"]
    key = begin + HEAD.size
    place = key + head["key_size"] + GAP.size * ((flags & HAS_GAP) > 0)
    about_position = np.zeros(len(begin), np.int64)
    known = (flags & HAS_ABOUT).nonzero()[0]
    about_position[known] = values_at(data, "<i8", place[known])
    place[known] += ABOUT.size
    other = (kind >= len(KINDS)).nonzero()[0]
    place[other] += LENGTH.size + _sizes(data, place[other])
    about = place + LENGTH.size
    named = (flags & HAS_ABOUT_TEXT).nonzero()[0]
    about_size = np.zeros(len(begin), np.int64)
    about_size[named] = _sizes(data, place[named])
    place[named] = about[named] + about_size[named]
    if (place > end).any():
        raise ValueError("a record ends before its body begins")
    kind[other] = OTHER_KIND
    kind[(kind == DECISION_KIND) & ((flags & HAS_KEY) == 0)] = OTHER_KIND
    feedback = (kind == REWARD_KIND) | (kind == ACTIVATION_KIND)
    kind[feedback & ((flags & (HAS_ABOUT_TEXT | ABOUT_OF_KEY)) == 0)] = OTHER_KIND
    stored = ByteColumn(data, key, head["key_size"].astype(np.int64))
    keys = RecordKeys(stored, flags, ByteColumn(data, about, about_size))
    return EventColumns(
        head["position"].copy(),
        head["at"].copy(),
        kind,
        keys,
        about_position,
        ByteColumn(data, place, end - place),
    )


def _sizes(data: bytes, places: Places) -> Places:
    """Return the numbers of bytes of the texts that begin at some places."""
    return values_at(data, "<u4", places).astype(np.int64)
