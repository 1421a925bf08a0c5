"""The choices of a menu, and real-valued parts."""

from collections import Counter
from typing import Any, Literal, TypeGuard

import msgspec

from submax.core.errors import ConflictError, InputError
from submax.core.spaces.real_space import check_bounds
from submax.schema.names import check_name

ARMS = ""
"""The name of the one slot of plain arms."""
MOST_CHOICES = 10_000
Features = dict[str, float | str]
"""What describes a choice: numbers, and categories as texts."""


class Choice(msgspec.Struct, frozen=True):
    """A choice keeps its number, its name and its features for ever."""

    name: str
    status: Literal["active", "paused", "retired"] = "active"
    features: Features = {}


class Slot(msgspec.Struct, frozen=True):
    """A place in which one of several choices is shown."""

    name: str
    choices: tuple[Choice, ...]


class NumberRange(msgspec.Struct, frozen=True):
    """A real-valued part, such as a price."""

    name: str
    low: float
    high: float


class Change(msgspec.Struct, frozen=True):
    """What is to happen to a choice; one that is added brings its ``features``."""

    verb: Literal["add", "pause", "resume", "retire"]
    choice: str
    slot: str = ARMS
    features: Features = {}


STATUS = {"add": "active", "pause": "paused", "resume": "active", "retire": "retired"}
"""What a choice is after each verb."""


def check_move(choices: list[Choice], number: int, change: Change) -> None:
    """A retired choice stays so, and one choice at least stays active."""
    choice = choices[number]
    if choice.status == "retired":
        raise ConflictError(f"{choice.name!r} is retired for good: add a choice with another name")
    others = any(one.status == "active" for one in choices if one is not choice)
    if change.verb != "resume" and not others:
        raise ConflictError(
            f"{choice.name!r} is the last active choice{where(change.slot)}: add another first"
        )


def slot_of(name: str, names: object) -> Slot:
    """A slot from the names of its choices."""
    if not is_list(names) or not 0 < len(names) <= MOST_CHOICES:
        raise InputError(
            f"the choices{where(name)} must be a list of 1 to {MOST_CHOICES} names, or of two "
            f"numbers (low, high), not {names!r:.60}"
        )
    for one in names:
        check_name(f"a choice{where(name)}", one)
    if len(set(names)) < len(names):
        twice, _ = Counter(names).most_common(1)[0]
        raise InputError(f"the choice {twice!r}{where(name)} is named twice")
    return Slot(name, tuple(Choice(one) for one in names))


def number_range_of(name: str, low: float, high: float) -> NumberRange:
    """A real-valued part within bounds."""
    check_bounds((low,), (high,))
    return NumberRange(name, float(low), float(high))


def is_number_range(given: object) -> bool:
    """Whether these are two numbers."""
    return (
        isinstance(given, (list, tuple))
        and len(given) == 2
        and all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in given)
    )


def is_list(given: object) -> TypeGuard[list[Any]]:
    """Whether these may be names."""
    return isinstance(given, (list, tuple))


def active_names(slot: Slot) -> list[str]:
    """The names of the choices that may be shown."""
    return [choice.name for choice in slot.choices if choice.status == "active"]


def where(slot: str) -> str:
    """In which slot, as words of a message; nothing for plain arms."""
    return f" of {slot!r}" if slot else ""
