"""The named actions of a bandit."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from submax.core.checks import one_of
from submax.core.errors import ConflictError, InputError
from submax.core.problem import ActionFeatures
from submax.core.spaces import Arms, Box, Mixed, Slots, Space
from submax.schema.action import Action
from submax.schema.action_features import check_new_features, described, encoded_features
from submax.schema.choices import (
    ARMS,
    MOST_CHOICES,
    STATUS,
    Change,
    Choice,
    NumberRange,
    Slot,
    active_names,
    check_status_change,
    is_list,
    is_number_range,
    number_range_of,
    of_slot,
    slot_of,
)
from submax.schema.names import check_name

LISTED = 65_536
"""Largest number of joint actions whose probabilities a live bandit lists: half a megabyte."""
MOST_SLOTS = 64
"""Largest number of slots, named ones and ranges of numbers together."""

EncodedAction = list[int | float]
"""The index of the choice in each slot, then the real-valued parts."""
ChoiceIndices = tuple[tuple[int, ...], ...]
"""The indices of some choices of each slot, such as the active or the eligible ones."""


class Menu(msgspec.Struct, frozen=True):
    """All actions: slots with named choices, and ranges of numbers.

    Plain arms are a menu with a single slot, whose name is ``ARMS``.
    """

    slots: tuple[Slot, ...]
    ranges: tuple[NumberRange, ...] = ()

    @classmethod
    def of(cls, actions: object, features: object = None) -> "Menu":
        """Return the menu for a list of names, or for a table of slots.

        A slot is a list of names, or a pair (low, high) for a range of numbers. ``features`` maps
        choices to their features; with named slots, it maps slots to such tables.
        """
        menu = cls._named(actions)
        if features is None:
            return menu
        return msgspec.structs.replace(menu, slots=described(menu.slots, features))

    @classmethod
    def _named(cls, actions: object) -> "Menu":
        if isinstance(actions, Mapping):
            return cls._of_slots(actions)
        if not is_list(actions):
            raise InputError(
                "actions must be a list of names, or a table of slots such as "
                f"{{'title': ['A', 'B']}}, not {actions!r:.60}",
                parameter="actions",
            )
        return cls((slot_of(ARMS, actions),))

    @classmethod
    def _of_slots(cls, actions: Mapping[Any, Any]) -> "Menu":
        if not 0 < len(actions) <= MOST_SLOTS:
            raise InputError(f"actions must have 1 to {MOST_SLOTS} slots, not {len(actions)}")
        for name in actions:
            check_name("the name of a slot", name)
        numbers = {name: given for name, given in actions.items() if is_number_range(given)}
        ranges = tuple(number_range_of(name, *given) for name, given in numbers.items())
        named = [name for name in actions if name not in numbers]
        return cls(tuple(slot_of(name, actions[name]) for name in named), ranges)

    @property
    def plain(self) -> bool:
        """Whether the actions are plain arms."""
        return len(self.slots) == 1 and self.slots[0].name == ARMS

    @property
    def active(self) -> ChoiceIndices:
        """The indices of the active choices of each slot."""
        return tuple(
            tuple(index for index, one in enumerate(slot.choices) if one.status == "active")
            for slot in self.slots
        )

    @property
    def can_list(self) -> bool:
        """Whether all joint actions can be listed."""
        return not self.ranges and self.space(self.active).size <= LISTED

    @property
    def declaration(self) -> list[str] | dict[str, Any]:
        """The argument ``actions`` from which ``of`` makes this menu, with every choice active."""
        if self.plain:
            return [choice.name for choice in self.slots[0].choices]
        slots = {slot.name: [choice.name for choice in slot.choices] for slot in self.slots}
        return {**slots, **{one.name: (one.low, one.high) for one in self.ranges}}

    @property
    def features(self) -> dict[str, Any] | None:
        """The argument ``features`` from which ``of`` makes this menu, with every choice active."""
        found = {
            slot.name: {choice.name: choice.features for choice in slot.choices}
            for slot in self.slots
            if any(choice.features for choice in slot.choices)
        }
        return (found[ARMS] if self.plain else found) if found else None

    @property
    def revived(self) -> "Menu":
        """The same menu with every choice active."""
        slots = tuple(
            Slot(slot.name, tuple(Choice(one.name, features=one.features) for one in slot.choices))
            for slot in self.slots
        )
        return Menu(slots, self.ranges)

    def action_features(self, choices: ChoiceIndices) -> ActionFeatures:
        """Return the features of these choices as numbers, for a ``Problem``."""
        found = tuple(map(encoded_features, self.slots, choices))
        return found if any(found) else ()

    def space(self, choices: ChoiceIndices) -> Space:
        """Return the space of joint actions of these choices."""
        sizes = tuple(map(len, choices))
        low = tuple(part.low for part in self.ranges)
        high = tuple(part.high for part in self.ranges)
        if not self.ranges:
            return Arms(sizes[0]) if self.plain else Slots(sizes)
        return Mixed(sizes, low, high) if sizes else Box(low, high)

    def eligible(self, wanted: object) -> ChoiceIndices:
        """Return the indices of the active choices among ``wanted``, or all if it is None.

        ``wanted`` is a list of arms, or a table with lists of choices for some of the slots.
        """
        if wanted is None:
            return self.active
        table = self._by_slot(wanted)
        eligible = tuple(
            self._wanted(slot, active, table.get(slot.name))
            for slot, active in zip(self.slots, self.active, strict=True)
        )
        for slot, left in zip(self.slots, eligible, strict=True):
            if not left:
                raise InputError(
                    f"no choice is eligible{of_slot(slot.name)}: of those asked for, none is "
                    f"active; active: {', '.join(active_names(slot)) or 'none'}",
                    parameter="eligible",
                )
        return eligible

    def _by_slot(self, wanted: object) -> Mapping[str, Any]:
        if self.plain:
            return {ARMS: wanted}
        if not isinstance(wanted, Mapping):
            raise InputError(
                f"eligible must be a table of slots, not {wanted!r:.60}", parameter="eligible"
            )
        for name in wanted:
            if name in [part.name for part in self.ranges]:
                raise InputError(
                    f"{name!r} is a range of numbers, which cannot be restricted: leave it out",
                    parameter="eligible",
                )
            one_of("slot", str(name), [slot.name for slot in self.slots])
        return wanted

    def _wanted(self, slot: Slot, active: tuple[int, ...], names: object) -> tuple[int, ...]:
        if names is None:
            return active
        if not is_list(names):
            raise InputError(
                f"eligible{of_slot(slot.name)} must be a list of names, not {names!r:.60}",
                parameter="eligible",
            )
        known = {choice.name: index for index, choice in enumerate(slot.choices)}
        for name in names:
            if not isinstance(name, str) or name not in known:
                one_of(f"choice{of_slot(slot.name)}", str(name)[:80], active_names(slot))
                raise InputError(f"the name of a choice is a text, not {name!r:.60}")
        asked = {known[name] for name in names}
        return tuple(index for index in active if index in asked)

    def action(self, encoded: Sequence[int | float]) -> Action:
        """Return the names of an encoded action."""
        if self.plain:
            return self.slots[0].choices[int(encoded[0])].name
        named: dict[str, str | float] = {
            slot.name: slot.choices[int(index)].name
            for slot, index in zip(self.slots, encoded, strict=False)
        }
        for part, value in zip(self.ranges, encoded[len(self.slots) :], strict=True):
            named[part.name] = float(value)
        return named

    def encoded(self, action: object) -> EncodedAction:
        """Encode an action that is given by names."""
        if self.plain:
            return [self._index(self.slots[0], action)]
        names = [slot.name for slot in self.slots] + [one.name for one in self.ranges]
        if not isinstance(action, Mapping) or set(action) != set(names):
            raise InputError(
                f"an action must have a value for each of {', '.join(names)} and nothing else, "
                f"not {action!r:.80}"
            )
        encoded: EncodedAction = [self._index(slot, action[slot.name]) for slot in self.slots]
        for part in self.ranges:
            value = action[part.name]
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not number or not part.low <= value <= part.high:
                raise InputError(
                    f"{part.name} must be a number from {part.low} to {part.high}, "
                    f"not {value!r:.60}"
                )
            encoded.append(float(value))
        return encoded

    def _index(self, slot: Slot, name: object) -> int:
        names = [choice.name for choice in slot.choices]
        one_of(f"choice{of_slot(slot.name)}", str(name)[:80], names)
        return names.index(str(name))

    def changed(self, change: Change) -> "Menu":
        """Return the menu after adding, pausing, resuming or retiring a choice."""
        check_name("the name of a choice", change.choice)
        slot = self._slot_of(change)
        index = next((n for n, one in enumerate(slot.choices) if one.name == change.choice), None)
        choices = list(slot.choices)
        if change.verb == "add":
            self._check_new(slot, index, change.choice)
            features = check_new_features(slot, change.choice, change.features)
            choices.append(Choice(change.choice, features=features))
        else:
            if index is None:
                one_of(f"choice{of_slot(slot.name)}", change.choice, [one.name for one in choices])
                raise AssertionError("unreachable: one_of raises for an unknown name")
            check_status_change(choices, index, change)
            if change.features or change.ramp is not None:
                word = "features" if change.features else "ramp"
                raise InputError(
                    f"{word} can be set when a choice is added, not to {change.verb} it: leave "
                    f"{word} out",
                    parameter=word,
                )
            choices[index] = msgspec.structs.replace(choices[index], status=STATUS[change.verb])
        changed = msgspec.structs.replace(slot, choices=tuple(choices))
        slots = tuple(changed if one is slot else one for one in self.slots)
        return msgspec.structs.replace(self, slots=slots)

    def status(self, change: Change) -> str:
        """Return the status of the choice that a change is about."""
        slot = self._slot_of(change)
        return next(one.status for one in slot.choices if one.name == change.choice)

    def place(self, change: Change) -> tuple[int, int]:
        """Return the slot of the choice that a change is about, and its index there."""
        slot = self._slot_of(change)
        return self.slots.index(slot), self._index(slot, change.choice)

    def _slot_of(self, change: Change) -> Slot:
        found = next((slot for slot in self.slots if slot.name == change.slot), None)
        if found is None and change.slot == ARMS:
            names = ", ".join(slot.name for slot in self.slots) or "none"
            raise InputError(f"name the slot of {change.choice!r}: one of {names}")
        if found is None:
            check_name("the name of a slot", change.slot)
            one_of("slot", change.slot, [slot.name for slot in self.slots])
            raise AssertionError("unreachable: one_of raises for an unknown name")
        return found

    def _check_new(self, slot: Slot, index: int | None, name: str) -> None:
        if index is not None:
            status = slot.choices[index].status
            raise ConflictError(
                f"{name!r} is {'retired' if status == 'retired' else 'there already'}"
                f"{of_slot(slot.name)}: the name of a choice is used once, give another"
            )
        if len(slot.choices) >= MOST_CHOICES:
            raise InputError(f"a slot has at most {MOST_CHOICES} choices, retired ones included")
