"""Ids that are UUIDs, as two integers."""

import re
import struct

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII)
HALVES = struct.Struct(">qq")


def halves_of(identifier: str) -> tuple[int, int] | None:
    """The two halves of a UUID in small letters; None for any other id.

    The first half of a UUID of version 7 begins with the time, so that the first halves of
    successive ids differ little.

    >>> halves_of("00000000-0000-0001-0000-00000000000a")
    (1, 10)
    >>> halves_of("visit-1") is None
    True
    """
    if not UUID.fullmatch(identifier):
        return None
    high, low = HALVES.unpack(bytes.fromhex(identifier.replace("-", "")))
    return high, low


def identifier_from(high: int, low: int) -> str:
    """The UUID with these halves.

    >>> identifier_from(1, 10)
    '00000000-0000-0001-0000-00000000000a'
    """
    text = HALVES.pack(high, low).hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
