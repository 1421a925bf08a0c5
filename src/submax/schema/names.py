"""Names of actions, choices, slots, fields and categories."""

import math
from collections import Counter

from submax.core.errors import InputError

LONGEST_NAME = 200
"""Largest number of characters of a name, so messages and tables stay readable."""
LONGEST_REPR = 60
"""Largest number of characters of a value in an error message."""

Action = str | dict[str, str | float]
"""The name of an arm, or the chosen value of every slot and range by its name."""


def is_name(text: str) -> bool:
    """Return whether a text is allowed as the name of an action or a category."""
    return 0 < len(text) <= LONGEST_NAME and text.isprintable()


def rank(name: str) -> tuple[int, float, str]:
    """Return a key that sorts numbers first, by value, and other names after them."""
    try:
        number = float(name)
    except ValueError:
        number = math.nan
    return (1, 0.0, name) if math.isnan(number) else (0, number, name)


def check_name(what: str, value: object, parameter: str | None = None) -> None:
    """Raise an ``InputError`` unless the value is a printable string of 1 to 200 characters."""
    if not isinstance(value, str) or not is_name(value):
        raise InputError(
            f"{what} must be a string of 1 to {LONGEST_NAME} printable characters, "
            f"not {short_repr(value)}",
            parameter=parameter,
        )


def check_names(
    what: str, values: object, most: int, instead: str = "", parameter: str | None = None
) -> list[str]:
    """Return a list of different names, or raise an ``InputError`` about ``what`` they are."""
    if not isinstance(values, (list, tuple)) or not 0 < len(values) <= most:
        raise InputError(
            f"{what} must be a list of 1 to {most} names{instead}, not {short_repr(values)}",
            parameter=parameter,
        )
    for value in values:
        check_name(f"one of {what}", value, parameter)
    twice = next((value for value, count in Counter(values).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"{what} have {twice!r} twice: names must be unique", parameter=parameter)
    return list(values)


def short_repr(value: object) -> str:
    """Return the ``repr`` of any value for an error message, cut to 60 characters."""
    try:
        text = repr(value)
    except ValueError:
        # Python refuses to print whole numbers with thousands of digits.
        text = f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= LONGEST_REPR else f"{text[: LONGEST_REPR - 3]}..."
