"""Checks of values that users pass in. Each error names the value and what is allowed."""

import dataclasses
import difflib
import math
import re
from collections.abc import Callable, Iterable
from functools import cache
from numbers import Integral, Real
from typing import Annotated, Any, TypeAlias, TypeGuard, get_args

from submax.core.errors import InputError

MAX_WORDS_LISTED = 20
"""A message lists the allowed words if they are at most this many: about three lines of text."""
SIMILAR_WORDS = 3
"""How many similar words a message suggests if the allowed words are too many to list."""


def whole_number(name: str, value: object, *, at_least: int, at_most: int | None = None) -> None:
    """Raise an ``InputError`` unless the value is a whole number within the limits."""
    whole = int(value) if isinstance(value, Integral) and not isinstance(value, bool) else -math.inf
    _require(whole >= at_least, name, f"a whole number, at least {at_least}", value)
    _require(at_most is None or whole <= at_most, name, f"at most {at_most}", value)


def as_whole_number(name: str, value: Any, *, at_least: int, at_most: int | None = None) -> int:
    """Return the value as an int if it is a whole number within the limits, else raise.

    Floats such as 1e6 are whole numbers too.

    >>> as_whole_number("observations", 1e6, at_least=1)
    1000000
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    whole_number(name, value, at_least=at_least, at_most=at_most)
    return int(value)


def _number(allowed: str, fits: Callable[[float], bool]) -> Callable[[str, object], None]:
    def check(name: str, value: object) -> None:
        _require(_finite(value) and fits(value), name, allowed, value)

    return check


# Each raises an ``InputError`` unless the value is such a number.
positive = _number("a finite number above 0", lambda value: value > 0)
non_negative = _number("a finite number, 0 or more", lambda value: value >= 0)
finite = _number("a finite number", lambda value: True)
probability = _number("a number between 0 and 1", lambda value: 0 <= value <= 1)
below_one = _number("a number from 0 to below 1", lambda value: 0 <= value < 1)
factor = _number("a number above 0, at most 1", lambda value: 0 < value <= 1)


def at_least(name: str, value: object, limit: float) -> None:
    """Raise an ``InputError`` unless the value is a finite number, at least the limit."""
    _number(f"a finite number, at least {limit}", lambda number: number >= limit)(name, value)


def _require(fits: bool, name: str, allowed: str, value: object) -> None:
    if not fits:
        raise InputError(f"{name} must be {allowed}, not {value!r}", parameter=_parameter(name))


JSON_TYPES = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
}


def wrong_type(error: Exception) -> tuple[str, str]:
    """Return the place that an error of msgspec names, and what is wrong there, in plain words.

    >>> wrong_type(ValueError("Expected `int` >= 0, got `str` - at `$.seed`"))
    ('seed', 'must be a whole number, at least 0, not a string')
    """
    text, _, path = str(error).partition(" - at `$")
    place = path.strip("`.")
    if missing := re.fullmatch(r"Object missing required field `(.+)`", text):
        return f"{place}.{missing[1]}".strip("."), "is missing"
    found = re.fullmatch(r"Expected `(.+?)`(.*?)(?:, got `(.+)`)?", text)
    if found is None:
        return place, f"is not valid: {text}"
    kinds, limits, given = found.groups()
    words = [JSON_TYPES.get(kind, kind) for kind in kinds.split(" | ")]
    limits = limits.replace(" >= ", ", at least ").replace(" <= ", ", at most ")
    limits = limits.replace(" > ", " above ").replace(" < ", " below ").removesuffix(".0")
    limits = limits.replace(" matching regex ", " that matches ")
    wanted = f"must be {' or '.join(filter(None, (', '.join(words[:-1]), words[-1])))}{limits}"
    return place, f"{wanted}, not {JSON_TYPES.get(given, given)}" if given else wanted


def one_of(name: str, value: str, allowed: Iterable[str], *, listed_by: str = "") -> None:
    """Raise an ``InputError`` unless the word is allowed; the message suggests similar words.

    It lists the allowed words if they are few, and otherwise says ``listed_by``.
    """
    words = sorted(allowed)
    if value in words:
        return
    few = len(words) <= MAX_WORDS_LISTED
    hint = did_you_mean(value, words, count=1 if few else SIMILAR_WORDS)
    listed = ", ".join(words[:MAX_WORDS_LISTED]) or "none"
    allowed_words = f"allowed: {listed}" if few else listed_by or f"allowed: {listed}, …"
    raise InputError(f"unknown {name} {value!r}: {hint}{allowed_words}", parameter=_parameter(name))


def did_you_mean(value: str, allowed: Iterable[str], *, count: int = 1) -> str:
    """Return a hint for error messages if allowed words are similar to the value, else ``""``.

    >>> did_you_mean("contry", ["age", "country"])
    "did you mean 'country'? "
    >>> did_you_mean("thompsn", ["thompson-1-1", "thompson-1-9", "ucb1"], count=2)
    "did you mean 'thompson-1-9' or 'thompson-1-1'? "
    """
    close = [repr(word) for word in difflib.get_close_matches(value, list(allowed), n=count)]
    if not close:
        return ""
    several = f"{', '.join(close[:-1])} or {close[-1]}"
    return f"did you mean {several if len(close) > 1 else close[0]}? "


def _parameter(name: str) -> str | None:
    """Return the name if it is that of a parameter and not a description, such as 'each level'."""
    return name if re.fullmatch(r"[\w.-]+", name) else None


def _finite(value: object) -> TypeGuard[float]:
    try:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        # A whole number too large for a float.
        return False


def instance_of(name: str, value: object, kind: type, example: str) -> None:
    """Raise an ``InputError`` unless the value is an instance of ``kind``, such as ``example``."""
    if isinstance(value, type):
        _require(False, name, f"{value.__name__}(...), an instance and not the class", value)
    article = "an" if kind.__name__[0] in "AEIOU" else "a"
    if not isinstance(value, kind):
        raise InputError(
            f"{name} must be {article} {kind.__name__} such as {example}, not {value!r:.80}",
            parameter=_parameter(name),
        )


class Allowed:
    """What a field may hold: a check with its limits, in the annotation of the field.

    >>> depth: Annotated[int, Allowed(whole_number, at_least=1, at_most=9)] = 2
    """

    def __init__(self, check: Callable[..., None], *limits: Any, **named: Any) -> None:
        self._check, self._limits, self._named = check, limits, named

    def __call__(self, name: str, value: object) -> None:
        """Raise an ``InputError`` unless the value is allowed."""
        self._check(name, value, *self._limits, **self._named)


Count: TypeAlias = Annotated[int, Allowed(whole_number, at_least=1)]
Positive: TypeAlias = Annotated[float, Allowed(positive)]
NonNegative: TypeAlias = Annotated[float, Allowed(non_negative)]
Finite: TypeAlias = Annotated[float, Allowed(finite)]
Probability: TypeAlias = Annotated[float, Allowed(probability)]
BelowOne: TypeAlias = Annotated[float, Allowed(below_one)]
Factor: TypeAlias = Annotated[float, Allowed(factor)]


class Checked:
    """A dataclass whose fields are checked when it is made, as their annotations say.

    >>> @dataclasses.dataclass(frozen=True)
    ... class Coin(Checked):
    ...     chance: Probability = 0.5
    >>> Coin(1.5)
    Traceback (most recent call last):
    submax.core.errors.InputError: chance must be a number between 0 and 1, not 1.5
    """

    def __post_init__(self) -> None:
        kind: Any = type(self)
        for name, check, optional in _field_checks(kind):
            value = getattr(self, name)
            if not (optional and value is None):
                check(name, value)


@cache
def _field_checks(kind: Any) -> list[tuple[str, Allowed, bool]]:
    """The checks of each field, also those of base classes, and whether it may also be None."""
    found: dict[tuple[str, Allowed], bool] = {}
    for field in dataclasses.fields(kind):
        for base in kind.__mro__:
            wanted = getattr(base, "__annotations__", {}).get(field.name)
            options = (wanted, *get_args(wanted))
            marks = [mark for option in options for mark in getattr(option, "__metadata__", ())]
            for mark in filter(lambda one: isinstance(one, Allowed), marks):
                found.setdefault((field.name, mark), type(None) in options)
    return [(name, check, optional) for (name, check), optional in found.items()]
