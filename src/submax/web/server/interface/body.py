"""Limits on the bodies of requests."""

import json
import re
from collections import Counter
from typing import Any

import msgspec
from starlette.requests import Request

from submax.core.errors import InputError
from submax.web.server.interface.small_request import SmallRequest

LARGEST_BODY = 1_000_000
"""Bytes in a body: a thousand decisions with large contexts fit."""
DEEPEST = 20
"""Levels of nested lists and tables: no message needs more than six."""
LONGEST_LENGTH = 12
"""Digits of a content length that are read as a number; more digits are too large in any case."""
TEXT = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
"""A JSON text. Possessive quantifiers: a text without an end takes linear, not quadratic, time."""
BRACKET = re.compile(rb"[][{}]")


class TooLargeError(InputError):
    """The body of a request is too long."""

    default_code = "too-large"


async def limited_body(request: Request | SmallRequest, largest: int = LARGEST_BODY) -> bytes:
    """The body of a request; reading stops as soon as it is too long."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and (len(declared) > LONGEST_LENGTH or int(declared) > largest):
        raise TooLargeError(
            f"the body has {declared[:LONGEST_LENGTH]} bytes, and {largest} are allowed: send "
            "several smaller requests"
        )
    if isinstance(request, SmallRequest):
        check_depth(request.body)
        return request.body
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > largest:
            raise TooLargeError(
                f"the body has more than the {largest} bytes that are allowed: send several "
                "smaller requests"
            )
        parts.append(part)
    body = b"".join(parts)
    check_depth(body)
    return body


def check_depth(body: bytes) -> None:
    """Refuse JSON whose lists and tables are nested too deep.

    >>> check_depth(b'{"a": [1]}')
    """
    if body.count(b"[") + body.count(b"{") <= DEEPEST:
        return
    depth = 0
    for bracket in BRACKET.findall(TEXT.sub(b"", body)):
        depth += 1 if bracket in b"[{" else -1
        if depth > DEEPEST:
            raise InputError(
                f"the body is nested more than {DEEPEST} levels deep: send fewer levels"
            )


def check_unique_keys(body: bytes) -> None:
    """Refuse JSON in which a table has the same key twice, because one value would be lost.

    >>> check_unique_keys(b'{"a": {"b": 1}, "b": 2}')
    """
    # Every key is followed by a colon; texts may have more. If there are as many colons as keys
    # that are left after decoding, none was lost, and the slow search is not needed.
    colons = body.count(b":")
    if colons > 1 and colons != _keys_left(body):
        DECODER.decode(body.decode())


def _keys_left(body: bytes) -> int:
    """The number of keys that decoding leaves; -1 if the body cannot be decoded without a type."""
    try:
        return _count_keys(msgspec.json.decode(body))
    except msgspec.DecodeError:
        return -1


def _count_keys(value: Any) -> int:
    """The number of keys of all tables in a decoded value."""
    if isinstance(value, dict):
        return len(value) + sum(map(_count_keys, value.values()))
    return sum(map(_count_keys, value)) if isinstance(value, list) else 0


def _unique(pairs: list[tuple[str, Any]]) -> None:
    if len(dict(pairs)) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise InputError(f"the body has the key {twice!r:.60} twice in one table: give it once")


DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_int=str, parse_float=str)
