"""The parts of a menu: slots with named choices, and ranges of numbers."""

from collections import Counter
from typing import Any, Literal, TypeGuard

import msgspec

from submax.core.errors import ConflictError, InputError
from submax.core.spaces import check_bounds
from submax.schema.names import check_name

ARMS = ""
"""The name of the only slot if the actions are plain arms."""
MOST_CHOICES = 10_000
"""Largest number of choices of a slot, retired ones included; it bounds the cost of a decision."""
Features = dict[str, float | str]
"""The features of a choice by name: numbers, and categories as strings."""


class Choice(msgspec.Struct, frozen=True):
    """A named choice. Its position in its slot, its name and its features never change."""

    name: str
    status: Literal["active", "paused", "retired"] = "active"
    features: Features = {}


class Slot(msgspec.Struct, frozen=True):
    """A part of an action for which one of several named choices is chosen."""

    name: str
    choices: tuple[Choice, ...]


class NumberRange(msgspec.Struct, frozen=True):
    """A part of an action that is a number between ``low`` and ``high``, such as a price."""

    name: str
    low: float
    high: float


class Change(msgspec.Struct, frozen=True):
    """A change of a choice: its ``verb``, and the ``features`` of a choice that is added.

    A choice that is added is ramped up over ``ramp`` decisions, counted after the first ``since``
    of the log. In a request, a ramp of None stands for the default.
    """

    verb: Literal["add", "pause", "resume", "retire"]
    choice: str
    slot: str = ARMS
    features: Features = {}
    ramp: int | None = None
    since: int = 0


STATUS = {"add": "active", "pause": "paused", "resume": "active", "retire": "retired"}
"""The status of a choice after each verb."""


def check_status_change(choices: list[Choice], index: int, change: Change) -> None:
    """Raise a ``ConflictError`` if a choice is retired, or the last active one of its slot."""
    choice = choices[index]
    if choice.status == "retired":
        raise ConflictError(f"{choice.name!r} is retired for good: add a choice with another name")
    others = any(one.status == "active" for one in choices if one is not choice)
    if change.verb != "resume" and not others:
        raise ConflictError(
            f"{choice.name!r} is the last active choice{of_slot(change.slot)}: add another first"
        )


def slot_of(name: str, names: object) -> Slot:
    """Return a slot with these names of choices."""
    if not is_list(names) or not 0 < len(names) <= MOST_CHOICES:
        raise InputError(
            f"the choices{of_slot(name)} must be a list of 1 to {MOST_CHOICES} names, or of two "
            f"numbers (low, high), not {names!r:.60}"
        )
    for one in names:
        check_name(f"a choice{of_slot(name)}", one)
    if len(set(names)) < len(names):
        twice, _ = Counter(names).most_common(1)[0]
        raise InputError(f"the choice {twice!r}{of_slot(name)} is named twice")
    return Slot(name, tuple(Choice(one) for one in names))


def number_range_of(name: str, low: float, high: float) -> NumberRange:
    """Return a range of numbers, after checking its bounds."""
    check_bounds((low,), (high,))
    return NumberRange(name, float(low), float(high))


def is_number_range(given: object) -> bool:
    """Return whether this is a pair of numbers."""
    return (
        isinstance(given, (list, tuple))
        and len(given) == 2
        and all(isinstance(one, (int, float)) and not isinstance(one, bool) for one in given)
    )


def is_list(given: object) -> TypeGuard[list[Any]]:
    """Return whether this is a list or a tuple."""
    return isinstance(given, (list, tuple))


def active_names(slot: Slot) -> list[str]:
    """Return the names of the active choices."""
    return [choice.name for choice in slot.choices if choice.status == "active"]


def of_slot(slot: str) -> str:
    """Return " of 'slot'" for use in messages, or "" for plain arms."""
    return f" of {slot!r}" if slot else ""
