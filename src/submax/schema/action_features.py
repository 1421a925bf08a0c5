"""Action features: numbers and categories that describe the choices of a slot."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from submax.core.checks import one_of
from submax.core.errors import InputError
from submax.schema.choices import ARMS, Choice, Features, Slot, of_slot
from submax.schema.context_schema import LARGEST, as_number
from submax.schema.names import check_name, short_repr

MOST_FEATURES = 100
"""Largest number of features of a choice: more than any described catalogue needs."""
MOST_COLUMNS = 256
"""Largest number of columns that encode the features of a choice. A number takes one column, a
category one column per value that several choices share. Every stored policy holds all columns of
all choices, so their number is limited."""
EXAMPLE = "{'A': {'price': 3.0, 'genre': 'rock'}, 'B': {'price': 2.5, 'genre': 'jazz'}}"


def described(slots: Sequence[Slot], given: object) -> tuple[Slot, ...]:
    """Return the slots with the features of their choices.

    ``given`` maps choices to their features; with named slots, it maps slots to such tables. All
    choices of a slot in ``given`` must have the same features.
    """
    if not isinstance(given, Mapping):
        raise InputError(
            f"action_features must be a table such as {EXAMPLE}, not {short_repr(given)}",
            parameter="action_features",
        )
    tables = {ARMS: given} if [slot.name for slot in slots] == [ARMS] else given
    for name in tables:
        one_of("slot in action_features:", str(name), [slot.name for slot in slots])
    return tuple(
        _described(slot, tables[slot.name]) if slot.name in tables else slot for slot in slots
    )


def _described(slot: Slot, table: object) -> Slot:
    if not isinstance(table, Mapping):
        raise InputError(
            f"the action_features{of_slot(slot.name)} must be a table such as {EXAMPLE}, not "
            f"{short_repr(table)}",
            parameter="action_features",
        )
    known = {choice.name for choice in slot.choices}
    for name in table:
        if name not in known:
            one_of(f"choice{of_slot(slot.name)} in action_features:", str(name)[:80], known)
    choices = tuple(_with_features(slot, choice, table) for choice in slot.choices)
    _check_same(slot.name, choices)
    return msgspec.structs.replace(slot, choices=choices)


def _with_features(slot: Slot, choice: Choice, table: Mapping[Any, Any]) -> Choice:
    if choice.name not in table:
        raise InputError(
            f"the choice {choice.name!r}{of_slot(slot.name)} is missing in action_features: give "
            "its features too, since every choice must have the same ones",
            parameter="action_features",
        )
    return msgspec.structs.replace(choice, features=clean_features(choice.name, table[choice.name]))


def clean_features(choice: str, given: object) -> Features:
    """Return the features of a choice as plain floats and strings, or raise an ``InputError``."""
    if not isinstance(given, Mapping) or len(given) > MOST_FEATURES:
        raise InputError(
            f"the features of {choice!r} must be a table of at most {MOST_FEATURES} numbers and "
            f"texts such as {{'price': 3.0, 'genre': 'rock'}}, not {short_repr(given)}",
            parameter="features",
        )
    return {name: _value(choice, name, value) for name, value in given.items()}


def check_new_features(slot: Slot, choice: str, given: object) -> Features:
    """Return the features of a choice that is added to a slot; they must match the others'."""
    found = clean_features(choice, given)
    _check_same(slot.name, [*slot.choices, Choice(choice, features=found)])
    return found


def encoded_features(slot: Slot, indices: Sequence[int]) -> tuple[tuple[float, ...], ...]:
    """Return a row of numbers for each of these choices; no rows if they have no features."""
    choices = [slot.choices[index] for index in indices]
    columns: list[Sequence[float]] = []
    for name in sorted(slot.choices[0].features):
        values: list[Any] = [choice.features[name] for choice in choices]
        columns += _category(values) if isinstance(values[0], str) else [values]
    return tuple(zip(*columns, strict=True))


def _category(values: Sequence[str]) -> list[list[float]]:
    """Encode a category: one column per value that several choices have, 1 for them and 0 else.

    A value that only one choice has does not relate this choice to others, so it gets no column.
    The choice itself gets the mean of the other choices in each column.
    """
    counts = Counter(values)
    several = sorted(_shared(values))
    total = sum(counts[value] for value in several)
    return [
        [float(one == value) if counts[one] > 1 else counts[value] / total for one in values]
        for value in several
    ]


def _shared(values: Iterable[object]) -> list[Any]:
    """Return the values that occur more than once."""
    return [value for value, count in Counter(values).items() if count > 1]


def _value(choice: str, name: object, value: object) -> float | str:
    check_name(f"the name of a feature of {choice!r}", name)
    if isinstance(value, str):
        check_name(f"the feature {name!r} of {choice!r}", value)
        return value
    number = as_number(value)
    if number is None:
        raise InputError(
            f"the feature {name!r} of {choice!r} must be a number from {-LARGEST:g} to "
            f"{LARGEST:g}, or a text, not {short_repr(value)}",
            parameter=str(name),
        )
    return number


def _check_same(slot: str, choices: Sequence[Choice]) -> None:
    """Raise an ``InputError`` unless all choices have the same features, of the same kind."""
    owner = {name: choice for choice in reversed(choices) for name in choice.features}
    for choice in choices:
        for name, other in owner.items():
            if name not in choice.features:
                raise InputError(
                    f"the choice {choice.name!r}{of_slot(slot)} has no feature {name!r}, and "
                    f"{other.name!r} has: give every choice every feature, or leave {name!r} out",
                    parameter=name,
                )
            _check_kind(name, choice, other)
    width = 0
    for name, other in owner.items():
        category = isinstance(other.features[name], str)
        width += len(_shared(one.features[name] for one in choices)) if category else 1
    if width > MOST_COLUMNS:
        raise InputError(
            f"the features of the choices{of_slot(slot)} take {width} numbers, one for each number "
            f"and for each text that several choices have, and at most {MOST_COLUMNS} are "
            "possible: leave features out, or use fewer different texts",
            parameter="features",
        )


def _check_kind(name: str, choice: Choice, other: Choice) -> None:
    value, before = choice.features[name], other.features[name]
    if isinstance(value, str) != isinstance(before, str):
        raise InputError(
            f"the feature {name!r} of {choice.name!r} is {_kind(value)}, and that of "
            f"{other.name!r} is {_kind(before)}: give numbers to all choices, or texts to all",
            parameter=name,
        )


def _kind(value: float | str) -> str:
    return f"the text {value!r}" if isinstance(value, str) else f"the number {value:g}"
