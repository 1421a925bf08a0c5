"""Checks of values that users pass in. Each error names the value and what is allowed."""

import difflib
import math
from collections.abc import Iterable
from numbers import Integral, Real
from typing import TypeGuard

from submax.core.errors import InputError


def whole_number(name: str, value: object, *, at_least: int, at_most: int | None = None) -> None:
    """Raise an ``InputError`` unless the value is a whole number within the limits."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < at_least:
        raise InputError(f"{name} must be a whole number, at least {at_least}, not {value!r}")
    if at_most is not None and int(value) > at_most:
        raise InputError(f"{name} must be at most {at_most}, not {value!r}")


def positive(name: str, value: object) -> None:
    """Raise an ``InputError`` unless the value is a finite number above zero."""
    if not (_finite(value) and value > 0):
        raise InputError(f"{name} must be a finite number above 0, not {value!r}")


def non_negative(name: str, value: object) -> None:
    """Raise an ``InputError`` unless the value is a finite number, zero or more."""
    if not (_finite(value) and value >= 0):
        raise InputError(f"{name} must be a finite number, 0 or more, not {value!r}")


def finite(name: str, value: object) -> None:
    """Raise an ``InputError`` unless the value is a finite number."""
    if not _finite(value):
        raise InputError(f"{name} must be a finite number, not {value!r}")


def at_least(name: str, value: object, limit: float) -> None:
    """Raise an ``InputError`` unless the value is a finite number, at least the limit."""
    if not (_finite(value) and value >= limit):
        raise InputError(f"{name} must be a finite number, at least {limit}, not {value!r}")


def probability(name: str, value: object) -> None:
    """Raise an ``InputError`` unless the value is a number from 0 to 1, both included."""
    if not (_finite(value) and 0 <= value <= 1):
        raise InputError(f"{name} must be a number between 0 and 1, not {value!r}")


def below_one(name: str, value: object) -> None:
    """Raise an ``InputError`` unless the value is a number from 0 (included) to 1 (excluded)."""
    if not (_finite(value) and 0 <= value < 1):
        raise InputError(f"{name} must be a number from 0 to below 1, not {value!r}")


def one_of(name: str, value: str, allowed: Iterable[str]) -> None:
    """Raise an ``InputError`` unless the word is allowed; the message suggests a similar word."""
    words = sorted(allowed)
    if value in words:
        return
    hint = did_you_mean(value, words)
    raise InputError(f"unknown {name} {value!r}: {hint}allowed: {', '.join(words) or 'none'}")


def did_you_mean(value: str, allowed: Iterable[str]) -> str:
    """Return a hint for error messages if an allowed word is similar to the value, else ``""``.

    >>> did_you_mean("contry", ["age", "country"])
    "did you mean 'country'? "
    """
    close = difflib.get_close_matches(value, list(allowed), n=1)
    return f"did you mean {close[0]!r}? " if close else ""


def _finite(value: object) -> TypeGuard[float]:
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        # A whole number too large for a float.
        return False


def instance_of(name: str, value: object, kind: type, example: str) -> None:
    """Refuse a value that is not an instance of ``kind``; a class instead is explained."""
    if isinstance(value, kind):
        return
    if isinstance(value, type):
        raise InputError(
            f"{name} must be an instance, and the class {value.__name__} was given: "
            f"give {value.__name__}(...)"
        )
    kind_name = f"{'an' if kind.__name__[0] in 'AEIOU' else 'a'} {kind.__name__}"
    raise InputError(f"{name} must be {kind_name} such as {example}, not {value!r:.80}")
