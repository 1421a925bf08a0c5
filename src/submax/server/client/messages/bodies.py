"""The bodies of requests, which are checked before anything is sent."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, SupportsFloat, SupportsInt

import msgspec

from submax.core.errors import InputError
from submax.live.declaring.names import new_identifier


def decision_body(
    context: Mapping[str, Any] | None = None,
    id: str | None = None,  # noqa: A002 - the same word as in decide
    eligible: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
    activate: bool = True,
) -> bytes:
    """The body of a decision request, with an id, so that it can be sent again."""
    for value in (context or {}).values():
        _finite(value)
    return encoded(
        {
            "context": context,
            "id": new_identifier() if id is None else id,
            "eligible": eligible,
            "activate": activate,
        }
    )


def reward_body(reward: Mapping[str, Any]) -> bytes:
    """The body of a reward: its id, value and key."""
    _finite(reward.get("value"))
    return encoded(dict(reward))


def encoded(body: object) -> bytes:
    """A body as JSON; what JSON cannot express is refused."""
    try:
        return msgspec.json.encode(body, enc_hook=_plain)
    except (TypeError, UnicodeError) as error:
        raise InputError(
            f"the request cannot be written as JSON ({error}): give texts, numbers, lists, tables"
        ) from error


def joined(word: str, bodies: Sequence[bytes]) -> bytes:
    """A table with one word, under which all bodies are listed.

    >>> joined("rewards", [b"{}", b"{}"])
    b'{"rewards":[{},{}]}'
    """
    return b'{"%b":[%b]}' % (word.encode(), b",".join(bodies))


def _plain(value: object) -> object:
    """A number of NumPy as a number of Python."""
    if isinstance(value, (SupportsInt, SupportsFloat)) and hasattr(value, "item"):
        return _finite(value.item())
    raise TypeError(f"{value!r:.60} is no text, number, list or table")


def _finite(value: object) -> object:
    """Refuse NaN and infinity: JSON has no word for them, and null would mean "missing"."""
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"a number must be finite, not {value}")
    return value
