"""Names of actions, choices, slots, fields and categories."""

from threading import Lock
from typing import Any, TypeVar

import msgspec

from submax.core.errors import InputError

LONGEST_NAME = 200
"""Largest number of characters of a name, so that messages and tables stay readable."""
LONGEST_REPR = 60
"""Largest number of characters of a value in an error message."""

Action = str | dict[str, str | float]
"""The name of an arm, or the chosen value of every slot and range by its name."""


def check_name(what: str, value: object) -> None:
    """Raise an ``InputError`` unless the value is a printable string of 1 to 200 characters."""
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_NAME or not value.isprintable():
        raise InputError(
            f"{what} must be a text of 1 to {LONGEST_NAME} printable characters, "
            f"not {short_repr(value)}"
        )


def short_repr(value: object) -> str:
    """Return the ``repr`` of any value for an error message, cut to 60 characters."""
    try:
        text = repr(value)
    except ValueError:
        # Python refuses to print whole numbers with thousands of digits.
        text = f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= LONGEST_REPR else f"{text[: LONGEST_REPR - 3]}..."


Kind = TypeVar("Kind")
_LOCK = Lock()
_KNOWN: set[Any] = set()


def known_type(kind: type[Kind]) -> type[Kind]:
    """Return the type itself, after msgspec has examined it and everything inside of it.

    msgspec 0.22 examines a ``Struct`` when it is first decoded, and writes what it finds into the
    class field by field. If a second thread decodes the same class meanwhile, it reads fields that
    are not there yet, and the process dies by a segmentation fault. So every type that is given to
    ``decode``, ``convert`` or a ``Decoder`` goes through this function, which waits for others:

    >>> msgspec.json.decode(b"[1, 2]", type=known_type(list[int]))
    [1, 2]
    """
    if kind not in _KNOWN:
        with _LOCK:
            msgspec.msgpack.Decoder(kind)
            _KNOWN.add(kind)
    return kind
