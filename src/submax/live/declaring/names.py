"""Names that callers choose: of bandits, decisions and rewards."""

import os
import re
import time

from submax.core.errors import InputError
from submax.schema.names import short_repr

VARIANTS = "89ab"
BANDIT = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)
IDENTIFIER = re.compile(r"[!-~]{1,128}", re.ASCII)


def check_bandit(name: object) -> None:
    """Refuse what cannot be part of an address."""
    if not isinstance(name, str) or not BANDIT.fullmatch(name):
        raise InputError(
            "the name of a bandit has up to 64 small letters, digits, '-' and '_', and "
            f"{short_repr(name)} is none"
        )


def check_identifier(what: str, value: object) -> None:
    """Refuse ids that not every store and log can hold."""
    if not isinstance(value, str) or not IDENTIFIER.fullmatch(value):
        raise InputError(
            f"{what} must be a text of 1 to 128 printable ASCII characters without spaces, "
            f"not {short_repr(value)}"
        )


def new_identifier() -> str:
    """A unique id; those made later sort behind, to the millisecond.

    The first 48 of its 128 bits are the time, the others are random: version 7 of RFC 9562.
    """
    at, chance = f"{time.time_ns() // 1_000_000:012x}", os.urandom(10).hex()
    variant = VARIANTS[int(chance[3], 16) & 3]
    return f"{at[:8]}-{at[8:]}-7{chance[:3]}-{variant}{chance[4:7]}-{chance[7:19]}"
