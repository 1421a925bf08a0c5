"""An event as it is stored: with a link to the event before it, and a checksum."""

import hashlib
import struct
from functools import lru_cache
from typing import NamedTuple

from submax.live.store.event import Event

CHECKSUM_BYTES = 8
"""Bytes of a checksum: damage stays unnoticed with a chance of 2⁻⁶⁴."""
NUMBERS = struct.Struct(">qqdqd")
"""Position, previous position, time, and position and time of what the event is about: integers
and floats of 64 bits, as ``int8send`` and ``float8send`` of PostgreSQL write them."""
LENGTH = struct.Struct(">i")
"""The number of bytes before each text, as ``int4send`` of PostgreSQL writes it; −1: no text."""

NO_TEXT = LENGTH.pack(-1)
"""The bytes of a text that is None."""


class SealedEvent(NamedTuple):
    """An event of a ``stream``, and what shows whether it was changed or its neighbours are lost.

    ``previous`` is the position of the event before it in the same stream, 0 for the first one.
    ``checksum`` is the beginning of the SHA-256 of all other values. SHA-256 was chosen because
    both Python and every PostgreSQL since version 11 compute it without an extension: positions
    and times of events are known only inside the statement that inserts them.
    """

    stream: str
    event: Event
    previous: int
    checksum: bytes

    @classmethod
    def of(cls, stream: str, event: Event, previous: int) -> "SealedEvent":
        """Seal an event that is going to be written."""
        return cls(stream, event, previous, checksum_of(stream, event, previous))

    @classmethod
    def of_row(cls, row: tuple[object, ...]) -> "SealedEvent":
        """The event in a row of ``SEALED_COLUMNS`` of PostgreSQL, damaged or not."""
        stream, *columns, previous, checksum = row
        return cls(stream, Event(*columns), previous, checksum)  # type: ignore[arg-type]  # checked by `whole`

    def as_first(self) -> "SealedEvent":
        """Seal the event as the first one of its stream, because those before it were deleted."""
        return SealedEvent.of(self.stream, self.event, 0)

    @property
    def whole(self) -> bool:
        """Whether the values are those that were sealed."""
        try:
            return checksum_of(self.stream, self.event, self.previous) == self.checksum
        except (TypeError, ValueError, AttributeError, struct.error):
            # A damaged row may hold values of other types.
            return False


def checksum_of(stream: str, event: Event, previous: int) -> bytes:
    """The checksum of an event; ``POSTGRES_CHECKSUM`` computes the same in SQL."""
    numbers = NUMBERS.pack(event.position, previous, event.at, event.about_position, event.about_at)
    key, about, body = event.key, event.about, event.body
    return checksum(
        b"%b%b%b%b%b%b"
        % (
            numbers,
            sealed_name(stream, event.kind),
            NO_TEXT if key is None else _sealed_text(key),
            NO_TEXT if about is None else _sealed_text(about),
            LENGTH.pack(len(body)),
            body,
        )
    )


def _sealed_text(text: str) -> bytes:
    # Bytes that are no UTF-8 come from a damaged file, and must not stop the search.
    data = text.encode("utf-8", "surrogateescape")
    return LENGTH.pack(len(data)) + data


@lru_cache(maxsize=1024)
def sealed_name(stream: str, kind: str) -> bytes:
    """The bytes of the stream and the kind of an event, which are the same for many events."""
    return _sealed_text(stream) + _sealed_text(kind)


def checksum(data: bytes) -> bytes:
    """The checksum of some bytes, such as those of a blob."""
    return hashlib.sha256(data).digest()[:CHECKSUM_BYTES]


def _sql(text: str) -> str:
    data = f"convert_to({text}, 'UTF8')"
    return f"int4send(coalesce(octet_length({data}), -1)) || coalesce({data}, ''::bytea)"


POSTGRES_CHECKSUM = f"""substring(sha256(
    int8send(position) || int8send(previous) || float8send(at)
    || int8send(about_position) || float8send(about_at)
    || {_sql("stream")} || {_sql("kind")} || {_sql("key")} || {_sql("about")}
    || int4send(octet_length(body)) || body
) FROM 1 FOR {CHECKSUM_BYTES})"""
"""The checksum of a row, as an expression of PostgreSQL over the names of its columns."""
