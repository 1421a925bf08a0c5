"""Reads the columns of a log that hold actions and eligible choices."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Integers
from submax.core.errors import InputError
from submax.evaluation.reading.checked_batch import CheckedBatch
from submax.evaluation.reading.columns.column_names import ColumnNames, check_same
from submax.evaluation.reading.columns.eligible_sets import EligibleSets
from submax.evaluation.reading.columns.vocabulary import (
    MISSING,
    NO_NAME,
    UNKNOWN,
    Vocabulary,
    not_whole,
)
from submax.schema.choices import ARMS, MOST_CHOICES
from submax.schema.menu import ChoiceIndices, Menu


class ActionColumns:
    """Reads the choice of every slot, then the real-valued parts, and the eligible choices.

    Without a ``menu`` the choices of a slot are the names that occur in its column.
    """

    def __init__(self, names: ColumnNames, menu: Menu | None) -> None:
        self._names, self._menu = names.actions, menu
        self.ranges = () if menu is None else menu.ranges
        self.slots = {slot: Vocabulary() for slot in names.actions}
        if menu is not None:
            wanted = [slot.name for slot in menu.slots] + [one.name for one in menu.ranges]
            check_same("slot", wanted, names.actions)
            self.slots = {
                slot.name: Vocabulary(one.name for one in slot.choices) for slot in menu.slots
            }
        self._eligible = EligibleSets(names.eligible, self.slots)

    def read(self, batch: CheckedBatch) -> tuple[NDArray[Any], NDArray[np.int32]]:
        """Return the actions ``[n, S]`` and the number of each row's set of eligible choices."""
        found: list[NDArray[Any]] = [
            self._choice(batch, self._names[slot], vocabulary)
            for slot, vocabulary in self.slots.items()
        ]
        for interval in self.ranges:
            column = self._names[interval.name]
            values = batch.required_numbers(column)
            outside = (values < interval.low) | (values > interval.high)
            batch.note(column, f"is not from {interval.low:g} to {interval.high:g}", outside)
            found.append(values)
        action = np.stack(found, axis=1)
        action = action if self.ranges else action.astype(np.int32)
        return action, self._eligible.read(batch, action)

    def _choice(self, batch: CheckedBatch, column: str, vocabulary: Vocabulary) -> Integers:
        code = vocabulary.code(batch.column(column))
        unknown = NO_NAME if vocabulary.open else "is not one of the declared actions"
        batch.note(column, "is missing: an action is needed", code == MISSING)
        batch.note(column, unknown, code == UNKNOWN)
        if len(vocabulary.indices) > MOST_CHOICES:
            raise InputError(
                f"column {column!r} has more than {MOST_CHOICES} different actions, which is the "
                "most that a slot may have: if they are real numbers, declare an interval, "
                f"{self._as_interval(column)}",
                parameter=column,
            )
        return code

    def _as_interval(self, column: str) -> str:
        """Return the argument that declares a column as real numbers."""
        slot = next(name for name, one in self._names.items() if one == column)
        if slot != ARMS:
            return f"actions={{{slot!r}: (low, high)}}"
        # Plain arms have no slot name, and an interval needs one: take that of the column.
        return f"columns={{'action': [{column!r}]}}, actions={{{column!r}: (low, high)}}"

    def finished(
        self, action: NDArray[Any], eligible_set: NDArray[np.int32]
    ) -> tuple[Menu, tuple[ChoiceIndices, ...], NDArray[np.int32]]:
        """Return the menu, the sets of eligible choices, and the index of each row's set.

        If no menu was declared, the names that occur become its choices, sorted; the indices in
        ``action`` are replaced accordingly.
        """
        if self._menu is not None:
            everything = self._menu.revived.active
            return self._menu, *self._eligible.finished(eligible_set, None, everything)
        names, new_indices = {}, []
        for slot, (name, vocabulary) in enumerate(self.slots.items()):
            eligible = self._eligible.choices(eligible_set, slot)
            used = np.union1d(np.unique(action[:, slot]), eligible).astype(np.int64)
            names[name], new_index = vocabulary.sorted(used)
            action[:, slot] = new_index[action[:, slot]]
            new_indices.append(new_index)
        menu = Menu.of(names.get(ARMS, names))
        return menu, *self._eligible.finished(eligible_set, new_indices, menu.active)

    def notes(self, menu: Menu, action: NDArray[Any]) -> Iterator[str]:
        """Yield sentences about what may surprise in the results of ``finished``."""
        for slot in menu.slots if self._menu is None else ():
            if not_whole(choice.name for choice in slot.choices):
                column = self._names[slot.name]
                yield (
                    f"column {column!r} holds numbers that are not whole, and they were read as "
                    f"{len(slot.choices)} names: if they are real-valued actions, declare an "
                    f"interval, {self._as_interval(column)}"
                )
        inactive = list(_no_longer_active(menu, action))
        if inactive:
            listed = ", ".join(inactive)[:200]
            yield f"the log contains choices that are no longer active: {listed}"


def _no_longer_active(menu: Menu, action: NDArray[Any]) -> Iterator[str]:
    """Yield the choices that some row took and that a policy may no longer choose."""
    for place, slot in enumerate(menu.slots):
        for index in np.unique(action[:, place]).astype(np.int64):
            choice = slot.choices[index]
            if choice.status != "active":
                yield choice.name if slot.name == ARMS else f"{slot.name}={choice.name}"
