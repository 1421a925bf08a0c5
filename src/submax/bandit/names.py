"""Names that callers choose: names of bandits, ids of decisions, keys of rewards."""

import os
import re
import time
from collections import deque

from submax.core.errors import InputError
from submax.schema.names import short_repr

VARIANTS = "89ab"
"""The hexadecimal digits that mark the variant of a UUID (RFC 9562): two fixed bits, two random."""
BANDIT = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)
"""The name of a bandit, which is part of addresses and of stream names."""
RANDOM_BYTES, DRAWN_AT_ONCE = 10, 256
"""Random bytes of an id, and how many ids' bytes are asked of the system at once: each question
is a system call, which lets another thread of Python run first."""
RANDOM_PARTS: deque[str] = deque()
"""Random ends for the next ids: what follows the time. Each is used once."""
if hasattr(os, "register_at_fork"):
    # Otherwise two processes would make the same ids.
    os.register_at_fork(after_in_child=RANDOM_PARTS.clear)
IDENTIFIER = re.compile(r"[!-~]{1,128}", re.ASCII)
"""The id of a decision or the key of a reward. Spaces separate the parts of an event's key."""


def check_bandit(name: object) -> None:
    """Refuse a name of a bandit that could not be part of an address."""
    if not isinstance(name, str) or not BANDIT.fullmatch(name):
        raise InputError(
            "the name of a bandit has up to 64 lower-case letters, digits, '-' and "
            f"'_', not {short_repr(name)}",
            parameter="name",
        )


def check_identifier(what: str, value: object) -> None:
    """Refuse an id or key that not every store and log could hold."""
    if not isinstance(value, str) or not IDENTIFIER.fullmatch(value):
        raise InputError(
            f"{what} must be a text of 1 to 128 printable ASCII characters without spaces, "
            f"not {short_repr(value)}"
        )


def new_identifier() -> str:
    """A unique id; ids sort by the millisecond in which they were made.

    It is a UUID of version 7 (RFC 9562): the first 48 of its 128 bits are the time, most others are
    random.
    """
    at = f"{time.time_ns() // 1_000_000:012x}"
    return f"{at[:8]}-{at[8:]}-{_random_part()}"


def _random_part() -> str:
    try:
        return RANDOM_PARTS.popleft()
    except IndexError:
        drawn = os.urandom(RANDOM_BYTES * DRAWN_AT_ONCE).hex()
        first, *others = (
            _end_of_id(drawn[start : start + 2 * RANDOM_BYTES])
            for start in range(0, len(drawn), 2 * RANDOM_BYTES)
        )
        RANDOM_PARTS.extend(others)
        return first


def _end_of_id(digits: str) -> str:
    """Return random hexadecimal digits in the form of the end of a UUID of version 7."""
    variant = VARIANTS[int(digits[3], 16) & 3]
    return f"7{digits[:3]}-{variant}{digits[4:7]}-{digits[7:19]}"
