"""Names that callers choose: names of bandits, ids of decisions, keys of rewards."""

import os
import re
import time
from collections import deque

from submax.core.errors import InputError
from submax.schema.names import short_repr

BANDIT = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)
"""The name of a bandit, which is part of addresses and of stream names."""
RANDOM_ENDS: deque[str] = deque()
"""What follows the time in the next ids. Many are made at once, because each question to the system
for random bytes is a system call, which lets another thread of Python run first."""
MADE_AT_ONCE = 256
if hasattr(os, "register_at_fork"):
    # Otherwise two processes would make the same ids.
    os.register_at_fork(after_in_child=RANDOM_ENDS.clear)
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
            f"{what} must be a string of 1 to 128 printable ASCII characters without spaces, "
            f"not {short_repr(value)}"
        )


def new_identifier() -> str:
    """A unique id; ids sort by the millisecond in which they were made.

    It is a UUID of version 7 (RFC 9562): the first 48 of its 128 bits are the time, most others are
    random.
    """
    at = f"{time.time_ns() // 1_000_000:012x}"
    try:
        end = RANDOM_ENDS.popleft()
    except IndexError:
        drawn = os.urandom(10 * MADE_AT_ONCE).hex()
        digits = [drawn[first : first + 20] for first in range(0, len(drawn), 20)]
        # The digits 7, and 8 to b, mark the version and the variant.
        end, *others = (
            f"7{one[:3]}-{'89ab'[int(one[3], 16) & 3]}{one[4:7]}-{one[7:19]}" for one in digits
        )
        RANDOM_ENDS.extend(others)
    return f"{at[:8]}-{at[8:]}-{end}"
