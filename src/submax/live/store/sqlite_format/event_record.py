"""An event as bytes, which are one value of a row in SQLite.

A record is ``HEAD`` and then, one after the other: the key; ``GAP`` if the flag says so; ``ABOUT``
if the flag says so; the kind if it has no number; the key of the event that it is about if the flag
says so; and the body, which has all bytes that are left. Numbers are little-endian, texts are UTF-8
after their number of bytes, and the key is packed.
"""

import struct

from submax.live.store.columns.event_kinds import KINDS, OTHER_KIND
from submax.live.store.event import Event
from submax.live.store.integrity.sealed_event import SealedEvent
from submax.live.store.sqlite_format.packed_key import decision_of, packed, unpacked

HEAD = struct.Struct("<IQ8sdHBB")
"""The bytes of the record, the position, the checksum, the time, the bytes of the key, the number
of the kind (``OTHER_KIND`` if it has none) and the flags."""
HEAD_FIELDS = [
    ("size", "<u4"),
    ("position", "<i8"),
    ("checksum", "V8"),
    ("at", "<f8"),
    ("key_size", "<u2"),
    ("kind", "u1"),
    ("flags", "u1"),
]
"""The same for numpy."""
AT_PLACE, AT_SIZE = 21, 8
"""Where the time is in a record, counted from 1 as in SQL, and how many bytes it has."""
AT = struct.Struct("<d")
GAP, ABOUT, LENGTH = struct.Struct("<q"), struct.Struct("<qd"), struct.Struct("<I")
NO_ABOUT = bytes(ABOUT.size)
HAS_KEY, HAS_GAP, HAS_ABOUT, HAS_ABOUT_TEXT, ABOUT_OF_KEY = 1, 2, 4, 8, 16
"""Flags: there is a key; the previous event of the stream is not one position before; position and
time of what the event is about are not 0; the key of what it is about is stored, or is that of the
decision whose id is in the event's own key."""
ALL_FLAGS = HAS_KEY | HAS_GAP | HAS_ABOUT | HAS_ABOUT_TEXT | ABOUT_OF_KEY
KIND_NAMES = {number: kind for kind, number in KINDS.items()}


def record_of(sealed: SealedEvent, stored_key: bytes | None) -> bytes:
    """Return the record of an event, of which ``stored_key`` is the packed key."""
    event = sealed.event
    number = KINDS.get(event.kind, OTHER_KIND)
    flags, parts = 0, [b""]
    if stored_key is not None:
        flags = HAS_KEY
        parts.append(stored_key)
    gap = event.position - sealed.previous
    if gap != 1:
        flags |= HAS_GAP
        parts.append(GAP.pack(gap))
    about = ABOUT.pack(event.about_position, event.about_at)
    if about != NO_ABOUT:
        flags |= HAS_ABOUT
        parts.append(about)
    if number == OTHER_KIND:
        parts.append(_text(event.kind))
    if event.about is not None:
        if event.about == decision_of(event.key):
            flags |= ABOUT_OF_KEY
        else:
            flags |= HAS_ABOUT_TEXT
            parts.append(_text(event.about))
    parts.append(event.body)
    size = HEAD.size + sum(map(len, parts))
    parts[0] = HEAD.pack(
        size,
        event.position,
        sealed.checksum,
        event.at,
        len(stored_key or b""),
        number,
        flags,
    )
    return b"".join(parts)


def sealed_event(stream: str, record: bytes) -> SealedEvent:
    """Return the event in a record; a ``ValueError`` or ``struct.error`` if it is no record."""
    size, position, checksum, at, key_size, number, flags = HEAD.unpack_from(record)
    place = HEAD.size + key_size
    stored_key = record[HEAD.size : place] if flags & HAS_KEY else None
    gap, about_position, about_at, about = 1, 0, 0.0, None
    if flags & HAS_GAP:
        (gap,), place = GAP.unpack_from(record, place), place + GAP.size
    if flags & HAS_ABOUT:
        (about_position, about_at), place = ABOUT.unpack_from(record, place), place + ABOUT.size
    key, kind = unpacked(stored_key), KIND_NAMES.get(number)
    if kind is None:
        kind, place = _read_text(record, place)
    if flags & HAS_ABOUT_TEXT:
        about, place = _read_text(record, place)
    elif flags & ABOUT_OF_KEY:
        about = decision_of(key)
    if size != len(record):
        raise ValueError(f"a record has {len(record)} bytes, and says that it has {size}")
    if place > len(record):
        raise ValueError(f"the parts of a record have {place} bytes, and the record has {size}")
    event = Event(position, at, kind, key, about, about_position, about_at, record[place:])
    return SealedEvent(stream, event, position - gap, checksum)


def checked_event(stream: str, position: int, key_size: object, record: object) -> SealedEvent:
    """Return the event of a row; if the row was changed, one that is not ``whole``.

    There is one way to write an event, so that every changed byte is noticed.
    """
    try:
        sealed = sealed_event(stream, record)  # type: ignore[arg-type]  # a damaged row has any type
        key = packed(sealed.event.key)
        stored = None if key is None else len(key), record_of(sealed, key)
        if sealed.event.position == position and stored == (key_size, record):
            return sealed
    except (ValueError, TypeError, struct.error):
        pass
    nothing = Event(position, 0.0, "", None, None, 0, 0.0, b"")
    # Empty bytes equal no checksum, so the event is not whole.
    return SealedEvent(stream, nothing, 0, b"")


def _text(text: str) -> bytes:
    data = text.encode()
    return LENGTH.pack(len(data)) + data


def _read_text(record: bytes, place: int) -> tuple[str, int]:
    (size,) = LENGTH.unpack_from(record, place)
    begin = place + LENGTH.size
    return record[begin : begin + size].decode("utf-8", "surrogateescape"), begin + size
