"""Which records have the checksums of their events, for many records at once."""

import hashlib
import struct

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans
from submax.live.store.columns.byte_column import values_at
from submax.live.store.columns.event_kinds import KINDS
from submax.live.store.columns.uuid_characters import uuid_characters
from submax.live.store.integrity.sealed_event import (
    CHECKSUM_BYTES,
    LENGTH,
    NO_TEXT,
    sealed_name,
)
from submax.live.store.sqlite_format.event_record import (
    ABOUT_OF_KEY,
    ALL_FLAGS,
    HAS_ABOUT_TEXT,
    HAS_KEY,
    KIND_NAMES,
    sealed_event,
)
from submax.live.store.sqlite_format.packed_key import END, LETTER_OF, PACKED_BYTES, UUID_BYTES
from submax.live.store.sqlite_format.record_table import RecordTable

FEWEST = 16
"""Events whose sealed values have the same form that are worth checking together."""
NUMBERS = np.dtype(
    [("position", ">i8"), ("previous", ">i8"), ("at", ">f8"), ("about", ">i8"), ("time", ">f8")]
)
"""The numbers of a sealed event, in the order of ``sealed_event.NUMBERS``."""
SPACE = ord(" ")


def whole_records(stream: str, table: RecordTable) -> Booleans:
    """Return which events of a stream have the checksums of their values.

    The sealed values of events with packed keys and bodies of one size have the same form, so that
    numpy writes them for all such events at once.
    """
    forms = _forms(table)
    whole = np.zeros(len(table), np.bool_)
    for form in np.unique(forms).tolist():
        places = (forms == form).nonzero()[0]
        if form and len(places) >= FEWEST:
            whole[places] = _have_checksums(stream, table, places)
        else:
            whole[places] = [_is_whole(stream, table.record(place)) for place in places.tolist()]
    # No checksum covers the bits of the flags that have no meaning.
    return whole & (table.flags <= ALL_FLAGS)


def _forms(table: RecordTable) -> NDArray[np.int64]:
    """Return a number for each form of sealed values; 0 if an event has another form."""
    key, flags, kind = table.key, table.flags, table.kind
    is_long = key.size >= PACKED_BYTES
    long = is_long.nonzero()[0]
    letter = np.zeros(len(table), np.int64)
    letter[long] = values_at(key.data, "u1", key.begin[long])
    separated = key.size == PACKED_BYTES
    named = (key.size > PACKED_BYTES).nonzero()[0]
    # The id ends with the UUID if a space follows it.
    separated[named] = values_at(key.data, "u1", key.begin[named] + PACKED_BYTES) == SPACE
    regular = is_long & separated & (kind < len(KINDS)) & np.isin(letter, [*LETTER_OF])
    regular &= ((flags & HAS_KEY) > 0) & ((flags & HAS_ABOUT_TEXT) == 0)
    about = (flags & ABOUT_OF_KEY) > 0
    columns = [letter, kind.astype(np.int64), about, key.size, table.body.size]
    form = np.ones(len(table), np.int64)
    for column in columns:
        _, number = np.unique(column, return_inverse=True)
        form = form * (int(number.max()) + 1) + number
    return np.where(regular, form + 1, 0)


def _have_checksums(stream: str, table: RecordTable, places: NDArray[np.int64]) -> Booleans:
    """Return which of the events at some places, all of one form, have their checksums."""
    key, body = table.key.take(places), table.body.take(places)
    first, stored = int(places[0]), key.rows()
    numbers = np.empty(len(places), NUMBERS)
    numbers["position"], numbers["previous"] = table.position[places], table.previous[places]
    numbers["at"], numbers["about"] = table.at[places], table.about_position[places]
    numbers["time"] = table.about_at[places]
    identifiers = uuid_characters(stored[:, 1 : 1 + UUID_BYTES])
    rest = stored[:, PACKED_BYTES:]
    letter = LETTER_OF[int(stored[0, 0])].encode()
    has_about = bool(table.flags[first] & ABOUT_OF_KEY)
    about = [LENGTH.pack(END) + b"d ", identifiers] if has_about else [NO_TEXT]
    parts = [
        numbers.view(np.uint8).reshape(len(places), NUMBERS.itemsize),
        sealed_name(stream, KIND_NAMES[int(table.kind[first])]),
        LENGTH.pack(END + rest.shape[1]) + letter + b" ",
        identifiers,
        rest,
        *about,
        LENGTH.pack(int(body.size[0])),
        body.rows(),
    ]
    same: Booleans = _hashes(parts, len(places)) == table.checksum[places].view("u8").ravel()
    return same


def _hashes(parts: list[bytes | NDArray[np.uint8]], count: int) -> NDArray[np.uint64]:
    """Return the checksums of values that consist of parts, the same or different for each."""
    columns = [
        np.broadcast_to(np.frombuffer(part, np.uint8), (count, len(part)))
        if isinstance(part, bytes)
        else part
        for part in parts
    ]
    joined = np.concatenate(columns, axis=1)
    size, data = joined.shape[1], joined.tobytes()
    found = b"".join(
        [
            hashlib.sha256(data[begin : begin + size]).digest()[:CHECKSUM_BYTES]
            for begin in range(0, count * size, size)
        ]
    )
    return np.frombuffer(found, "u8")


def _is_whole(stream: str, record: bytes) -> bool:
    try:
        return sealed_event(stream, record).whole
    except (ValueError, struct.error):
        return False
