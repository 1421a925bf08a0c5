"""The bodies of requests, which are checked before anything is sent."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, SupportsFloat, SupportsInt

import msgspec

from submax.bandit.names import new_identifier
from submax.core.errors import InputError

RewardValue = float | Mapping[str, float] | Sequence[float]
"""A reward, a table of rewards by their names or slots, or a list of a reward for each slot."""


def decision_body(
    context: Mapping[str, Any] | None = None,
    id: str | None = None,  # noqa: A002 - the same word as in decide
    eligible: Sequence[str] | Mapping[str, Sequence[str]] | None = None,
    activate: bool = True,
    unit: str | None = None,
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
            "unit": unit,
        }
    )


def reward_body(reward: Mapping[str, Any]) -> bytes:
    """The body of a reward: its id, its value and, if they are given, key, name and slot."""
    value = reward.get("value")
    if isinstance(value, Mapping):
        numbers: Iterable[object] = value.values()
    else:
        numbers = value if isinstance(value, (list, tuple)) else [value]
    for one in numbers:
        _finite(one)
    return encoded({name: given for name, given in reward.items() if given is not None})


def encoded(body: object) -> bytes:
    """A body as JSON; what JSON cannot express is refused."""
    try:
        return msgspec.json.encode(body, enc_hook=_plain)
    except (TypeError, UnicodeError) as error:
        raise InputError(
            f"the request cannot be written as JSON ({error}): give texts, numbers, lists, tables"
        ) from error


def joined(key: str, bodies: Sequence[bytes]) -> bytes:
    """Return a JSON object with one key, whose value is the list of all bodies.

    >>> joined("rewards", [b"{}", b"{}"])
    b'{"rewards":[{},{}]}'
    """
    return b'{"%b":[%b]}' % (key.encode(), b",".join(bodies))


def _plain(value: object) -> object:
    """A number of NumPy as a number of Python."""
    if isinstance(value, (SupportsInt, SupportsFloat)) and hasattr(value, "item"):
        return _finite(value.item())
    raise TypeError(f"{value!r:.60} is no text, number, list or table")


def _finite(value: object) -> object:
    """Refuse NaN and infinity: JSON cannot express them, and null would mean "missing"."""
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"a number must be finite, not {value}")
    return value
