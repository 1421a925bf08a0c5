"""Actions by name: arms, slots with choices, ranges of numbers, and their features."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from submax.core.checks import one_of
from submax.core.errors import ConflictError, InputError
from submax.core.problem import ActionFeatures
from submax.core.spaces import Arms, Box, Slots, Space
from submax.schema.context import LARGEST, as_number
from submax.schema.names import Action, check_name, check_names, short_repr

ARMS = ""
"""The name of the only slot if the actions are plain arms."""
MOST_CHOICES = 10_000
"""Largest number of choices of a slot, retired ones included; it bounds the cost of a decision."""
LISTED = 65_536
"""Largest number of joint actions whose probabilities a live bandit lists: half a megabyte."""
MOST_SLOTS = 64
"""Largest number of slots, named ones and ranges of numbers together."""
MOST_COLUMNS = 256
"""Largest number of columns that encode the features of a choice: every stored policy holds all
columns of all choices."""
STATUS = {"add": "active", "pause": "paused", "resume": "active", "retire": "retired"}
"""The status of a choice after each verb."""
Features = dict[str, float | str]
"""The features of a choice by name: numbers, and categories as strings."""
EncodedAction = list[int | float]
"""The index of the choice in each slot, then the real-valued parts."""
ChoiceIndices = tuple[tuple[int, ...], ...]
"""The indices of some choices of each slot, such as the active or the eligible ones."""


class Choice(msgspec.Struct, frozen=True):
    """A named choice. Its position in its slot, its name and its features never change."""

    name: str
    status: Literal["active", "paused", "retired"] = "active"
    features: Features = {}


class Change(msgspec.Struct, frozen=True):
    """A change of a choice: its ``verb``, and the ``features`` of a choice that is added.

    A choice that is added is ramped up over ``ramp`` decisions; None stands for the default.
    """

    verb: Literal["add", "pause", "resume", "retire"]
    choice: str
    slot: str = ARMS
    features: Features = {}
    ramp: int | None = None


class Slot(msgspec.Struct, frozen=True):
    """A part of an action for which one of several named choices is chosen."""

    name: str
    choices: tuple[Choice, ...]

    @property
    def names(self) -> list[str]:
        return [choice.name for choice in self.choices]

    @property
    def active(self) -> tuple[int, ...]:
        return tuple(at for at, choice in enumerate(self.choices) if choice.status == "active")

    def index(self, name: object) -> int:
        one_of(f"choice{of_slot(self.name)}", str(name)[:80], self.names)
        return self.names.index(str(name))

    def eligible(self, names: object) -> tuple[int, ...]:
        """The active choices among these names, or all if they are None, as indices."""
        if names is None:
            return self.active
        if not isinstance(names, (list, tuple)):
            raise InputError(
                f"eligible{of_slot(self.name)} must be a list of names, not {names!r:.60}",
                parameter="eligible",
            )
        active = {self.choices[index].name: index for index in self.active}
        asked = {str(name) for name in names}
        for name in asked.difference(active):
            one_of(f"choice{of_slot(self.name)}", name[:80], self.names)
        if not asked.intersection(active):
            raise InputError(
                f"no choice is eligible{of_slot(self.name)}; active: {', '.join(active) or 'none'}",
                parameter="eligible",
            )
        return tuple(index for name, index in active.items() if name in asked)

    def changed(self, change: Change) -> "Slot":
        name, verb, of = change.choice, change.verb, of_slot(self.name)
        status = next((choice.status for choice in self.choices if choice.name == name), None)
        if verb == "add":
            if status is not None:
                raise ConflictError(f"{name!r} is already {status}{of}: choose a new name")
            if len(self.choices) >= MOST_CHOICES:
                raise InputError(
                    f"a slot has at most {MOST_CHOICES} choices, retired ones included"
                )
            new = Choice(name, features=clean_features(name, change.features))
            return _with_features(self, (*self.choices, new))
        index = self.index(name)
        if status == "retired":
            raise ConflictError(
                f"{name!r} is retired and cannot return: add a choice with another name"
            )
        if verb != "resume" and not set(self.active) - {index}:
            raise ConflictError(f"{name!r} is the last active choice{of}: add another first")
        if change.features or change.ramp is not None:
            word = "features" if change.features else "ramp"
            raise InputError(
                f"{word} can be set when a choice is added, not to {verb} it: leave {word} out",
                parameter=word,
            )
        choices = list(self.choices)
        choices[index] = msgspec.structs.replace(choices[index], status=STATUS[verb])
        return Slot(self.name, tuple(choices))


class NumberRange(msgspec.Struct, frozen=True):
    """A part of an action that is a number between ``low`` and ``high``, such as a price."""

    name: str
    low: float
    high: float


def of_slot(slot: str) -> str:
    """Return " of 'slot'" for use in messages, or "" for plain arms."""
    return f" of {slot!r}" if slot else ""


# Features of choices


def described(slots: Sequence[Slot], given: object) -> tuple[Slot, ...]:
    """Return the slots with the features of their choices.

    ``given`` maps choices to their features; with named slots, it maps slots to such tables. All
    choices of a slot in ``given`` must have the same features.
    """
    tables: Any = {ARMS: given} if [slot.name for slot in slots] == [ARMS] else given
    if not isinstance(tables, Mapping) or not all(
        isinstance(table, Mapping) for table in tables.values()
    ):
        raise InputError(
            "action_features must be a table such as {'A': {'price': 3.0, 'genre': 'rock'}, 'B': "
            "{'price': 2.5, 'genre': 'jazz'}}; with slots, a table of slots with such tables, not "
            f"{short_repr(given)}",
            parameter="action_features",
        )
    by_name = {slot.name: slot for slot in slots}
    for name, table in tables.items():
        one_of("slot in action_features:", str(name), by_name)
        slot = by_name[name]
        for choice in table:
            one_of(f"choice{of_slot(name)} in action_features:", str(choice)[:80], slot.names)
        choices = []
        for choice in slot.names:
            if choice not in table:
                raise InputError(
                    f"the choice {choice!r}{of_slot(name)} is missing in action_features: give "
                    "its features too, since every choice must have the same ones",
                    parameter="action_features",
                )
            choices.append(Choice(choice, features=clean_features(choice, table[choice])))
        by_name[name] = _with_features(slot, tuple(choices))
    return tuple(by_name.values())


def clean_features(choice: str, given: object) -> Features:
    """Return the features of a choice as plain floats and strings, or raise an ``InputError``."""
    if not isinstance(given, Mapping) or len(given) > MOST_COLUMNS:
        raise InputError(
            f"the features of {choice!r} must be a table of at most {MOST_COLUMNS} numbers and "
            f"texts such as {{'price': 3.0, 'genre': 'rock'}}, not {short_repr(given)}",
            parameter="features",
        )
    clean: Features = {}
    for name, value in given.items():
        check_name(f"the name of a feature of {choice!r}", name)
        known = value if isinstance(value, str) else as_number(value)
        if known is None:
            raise InputError(
                f"the feature {name!r} of {choice!r} must be a number from {-LARGEST:g} to "
                f"{LARGEST:g}, or a string, not {short_repr(value)}",
                parameter=str(name),
            )
        if isinstance(known, str):
            check_name(f"the feature {name!r} of {choice!r}", known)
        clean[name] = known
    return clean


def _with_features(slot: Slot, choices: tuple[Choice, ...]) -> Slot:
    """The slot with these choices, which must have the same features of the same types."""
    width = 0
    for name in dict.fromkeys(name for choice in choices for name in choice.features):
        values = [choice.features.get(name) for choice in choices]
        kinds = {
            type(value): f"{value!r} for {choice.name!r}"
            for choice, value in zip(choices, values, strict=True)
        }
        if len(kinds) > 1:
            raise InputError(
                f"the feature {name!r} must be a number for all choices{of_slot(slot.name)}, or a "
                f"text for all, not {' and '.join(kinds.values())}: give every choice every "
                f"feature, or leave {name!r} out",
                parameter=name,
            )
        width += len(_shared(values)) if isinstance(values[0], str) else 1
    if width > MOST_COLUMNS:
        raise InputError(
            f"the features of the choices{of_slot(slot.name)} take {width} numbers, one for each "
            f"number and for each text that several choices have, and at most {MOST_COLUMNS} are "
            "possible: leave features out, or use fewer different texts",
            parameter="features",
        )
    return Slot(slot.name, choices)


def encoded_features(slot: Slot, indices: Sequence[int]) -> tuple[tuple[float, ...], ...]:
    """Return a row of numbers for each of these choices; no rows if they have no features.

    A category has one column per value that several choices have, 1 for them and 0 else. A value
    that only one choice has does not relate this choice to others, so it gets no column. The choice
    itself gets the mean of the other choices in each column.
    """
    choices = [slot.choices[index] for index in indices]
    columns: list[Sequence[float]] = []
    for name in sorted(slot.choices[0].features):
        values: list[Any] = [choice.features[name] for choice in choices]
        if not isinstance(values[0], str):
            columns.append(values)
            continue
        counts, several = Counter(values), sorted(_shared(values))
        total = sum(counts[value] for value in several)
        columns += [
            [float(one == value) if counts[one] > 1 else counts[value] / total for one in values]
            for value in several
        ]
    return tuple(zip(*columns, strict=True))


def _shared(values: Iterable[object]) -> list[Any]:
    """Return the values that occur more than once."""
    return [value for value, count in Counter(values).items() if count > 1]


# All actions


class ActionSpec(msgspec.Struct, frozen=True):
    """All actions: slots with named choices, and ranges of numbers.

    Plain arms are a single slot, whose name is ``ARMS``.
    """

    slots: tuple[Slot, ...]
    ranges: tuple[NumberRange, ...] = ()

    @classmethod
    def of(cls, actions: object, features: object = None) -> "ActionSpec":
        """Return the actions for a list of names, or for a table of slots.

        A slot is a list of names, or a pair (low, high) for a range of numbers. ``features`` maps
        choices to their features; with named slots, it maps slots to such tables.
        """
        if isinstance(actions, (list, tuple)):
            actions = {ARMS: actions}
        elif not isinstance(actions, Mapping):
            raise InputError(
                "actions must be a list of names, or a table of slots such as "
                f"{{'title': ['A', 'B']}}, not {actions!r:.60}",
                parameter="actions",
            )
        elif not 0 < len(actions) <= MOST_SLOTS:
            raise InputError(f"actions must have 1 to {MOST_SLOTS} slots, not {len(actions)}")
        else:
            for name in actions:
                check_name("the name of a slot", name)
        slots: list[Slot] = []
        ranges: list[NumberRange] = []
        for name, given in actions.items():
            is_pair = isinstance(given, (list, tuple)) and len(given) == 2
            if name != ARMS and is_pair and all(map(_is_number, given)):
                Box((given[0],), (given[1],))
                ranges.append(NumberRange(name, float(given[0]), float(given[1])))
            else:
                what = f"the choices{of_slot(name)}"
                names = check_names(what, given, MOST_CHOICES, ", or of two numbers (low, high)")
                slots.append(Slot(name, tuple(map(Choice, names))))
        return cls(tuple(slots) if features is None else described(slots, features), tuple(ranges))

    @property
    def parts(self) -> tuple[Slot | NumberRange, ...]:
        return (*self.slots, *self.ranges)

    @property
    def plain(self) -> bool:
        return len(self.slots) == 1 and self.slots[0].name == ARMS

    @property
    def active(self) -> ChoiceIndices:
        return tuple(slot.active for slot in self.slots)

    @property
    def can_list(self) -> bool:
        """Whether all joint actions can be listed."""
        return not self.ranges and self.space(self.active).size <= LISTED

    @property
    def declaration(self) -> list[str] | dict[str, Any]:
        """The argument ``actions`` from which ``of`` makes this, with every choice active."""
        slots = {slot.name: slot.names for slot in self.slots}
        ranges = {one.name: (one.low, one.high) for one in self.ranges}
        return slots[ARMS] if self.plain else {**slots, **ranges}

    @property
    def features(self) -> dict[str, Any] | None:
        """The argument ``features`` from which ``of`` makes this, with every choice active."""
        found = {
            slot.name: {choice.name: choice.features for choice in slot.choices}
            for slot in self.slots
            if any(choice.features for choice in slot.choices)
        }
        return found.get(ARMS, found) or None

    @property
    def revived(self) -> "ActionSpec":
        """The same actions with every choice active."""
        return ActionSpec.of(self.declaration, self.features)

    def action_features(self, choices: ChoiceIndices) -> ActionFeatures:
        """Return the features of these choices as numbers, for a ``Problem``."""
        found = tuple(map(encoded_features, self.slots, choices))
        return found if any(found) else ()

    def space(self, choices: ChoiceIndices) -> Space:
        sizes = tuple(map(len, choices))
        if self.ranges:
            low, high = zip(*((part.low, part.high) for part in self.ranges), strict=True)
            return Box(low, high, sizes)
        return Arms(sizes[0]) if self.plain else Slots(sizes)

    def eligible(self, wanted: object) -> ChoiceIndices:
        """Return the indices of the active choices among ``wanted``, or all if it is None.

        ``wanted`` is a list of arms, or a table with lists of choices for some of the slots.
        """
        if wanted is None or self.plain:
            return tuple(slot.eligible(wanted) for slot in self.slots)
        if not isinstance(wanted, Mapping):
            raise InputError(
                f"eligible must be a table of slots, not {wanted!r:.60}", parameter="eligible"
            )
        names = [slot.name for slot in self.slots]
        for name in wanted:
            one_of("slot", str(name), names)
        return tuple(slot.eligible(wanted.get(slot.name)) for slot in self.slots)

    def action(self, encoded: Sequence[int | float]) -> Action:
        if self.plain:
            return self.slots[0].choices[int(encoded[0])].name
        return {
            part.name: part.choices[int(value)].name if isinstance(part, Slot) else float(value)
            for part, value in zip(self.parts, encoded, strict=True)
        }

    def encoded(self, action: object) -> EncodedAction:
        if self.plain:
            return [self.slots[0].index(action)]
        names = [part.name for part in self.parts]
        if not isinstance(action, Mapping) or set(action) != set(names):
            raise InputError(
                f"an action must have a value for each of {', '.join(names)} and nothing else, "
                f"not {action!r:.80}"
            )
        for part in self.ranges:
            value = action[part.name]
            if not _is_number(value) or not part.low <= value <= part.high:
                raise InputError(
                    f"{part.name} must be a number from {part.low} to {part.high}, "
                    f"not {value!r:.60}"
                )
        numbers = (float(action[part.name]) for part in self.ranges)
        return [*(slot.index(action[slot.name]) for slot in self.slots), *numbers]

    def changed(self, change: Change) -> "ActionSpec":
        check_name("the name of a choice", change.choice)
        slot = self._slot_of(change)
        slots = tuple(one.changed(change) if one is slot else one for one in self.slots)
        return ActionSpec(slots, self.ranges)

    def place(self, change: Change) -> tuple[int, int]:
        """Return the slot of the choice that a change is about, and its index there."""
        slot = self._slot_of(change)
        return self.slots.index(slot), slot.index(change.choice)

    def _slot_of(self, change: Change) -> Slot:
        slots = {slot.name: slot for slot in self.slots}
        if change.slot == ARMS and not self.plain:
            listed = ", ".join(slots) or "none"
            raise InputError(f"name the slot of {change.choice!r}: one of {listed}")
        one_of("slot", str(change.slot), slots)
        return slots[change.slot]


def _is_number(given: object) -> bool:
    return isinstance(given, (int, float)) and not isinstance(given, bool)
