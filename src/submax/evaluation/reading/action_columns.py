"""The actions of a log."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Integers
from submax.core.errors import InputError
from submax.evaluation.reading.checked_batch import CheckedBatch
from submax.evaluation.reading.column_names import ColumnNames, check_same
from submax.evaluation.reading.eligible_sets import EligibleSets
from submax.evaluation.reading.vocabulary import (
    MISSING,
    NO_NAME,
    UNKNOWN,
    Vocabulary,
    not_whole,
)
from submax.schema.choices import ARMS, MOST_CHOICES
from submax.schema.menu import Menu, Shown


class ActionColumns:
    """Reads the choice of every slot, and what was eligible; real-valued parts come last."""

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
        """The rows' actions ``[n, S]``, and the number of the set that was eligible."""
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
        unknown = NO_NAME if vocabulary.open else "is none of the actions"
        batch.note(column, "is missing: an action is needed", code == MISSING)
        batch.note(column, unknown, code == UNKNOWN)
        if len(vocabulary.numbers) > MOST_CHOICES:
            raise InputError(
                f"column {column!r} has more than {MOST_CHOICES} different actions: real "
                f"numbers are declared as an interval, {self._as_interval(column)}"
            )
        return code

    def _as_interval(self, column: str) -> str:
        """How a column of real numbers is declared."""
        slot = next(name for name, one in self._names.items() if one == column)
        if slot != ARMS:
            return f"actions={{{slot!r}: (low, high)}}"
        # Plain arms have no name that an interval could have.
        return f"columns={{'action': [{column!r}]}}, actions={{{column!r}: (low, high)}}"

    def finished(
        self, action: NDArray[Any], shown: NDArray[np.int32]
    ) -> tuple[Menu, tuple[Shown, ...], NDArray[np.int32]]:
        """The menu, the eligible sets and each row's; what was met is sorted, in ``action`` too."""
        if self._menu is not None:
            return self._menu, *self._eligible.menus(shown, None, self._menu.revived.active)
        found, places = {}, []
        for slot, (name, vocabulary) in enumerate(self.slots.items()):
            eligible = self._eligible.choices(shown, slot)
            used = np.union1d(np.unique(action[:, slot]), eligible).astype(np.int64)
            found[name], place = vocabulary.sorted(used)
            action[:, slot] = place[action[:, slot]]
            places.append(place)
        menu = Menu.of(found.get(ARMS, found))
        return menu, *self._eligible.menus(shown, places, menu.active)

    def notes(self, menu: Menu, action: NDArray[Any]) -> Iterator[str]:
        """What may surprise in the ``menu`` and the actions that ``finished`` made."""
        for slot in menu.slots if self._menu is None else ():
            if not_whole(choice.name for choice in slot.choices):
                column = self._names[slot.name]
                yield (
                    f"column {column!r} holds numbers that are not whole, taken as "
                    f"{len(slot.choices)} names: declare an interval, {self._as_interval(column)}"
                )
        gone = list(_no_longer_active(menu, action))
        if gone:
            yield f"choices that are no longer active are part of the log: {', '.join(gone)[:200]}"


def _no_longer_active(menu: Menu, action: NDArray[Any]) -> Iterator[str]:
    """The choices that some row took and a policy may no longer choose."""
    for place, slot in enumerate(menu.slots):
        for number in np.unique(action[:, place]).astype(np.int64):
            choice = slot.choices[number]
            if choice.status != "active":
                yield choice.name if slot.name == ARMS else f"{slot.name}={choice.name}"
