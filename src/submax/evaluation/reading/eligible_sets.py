"""The sets of choices that were eligible in a log."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Integers
from submax.evaluation.reading.cells import eligible_names
from submax.evaluation.reading.checked_batch import CheckedBatch
from submax.evaluation.reading.vocabulary import Vocabulary
from submax.schema.menu import Shown

EVERYTHING, NO_SENSE = 0, -1


class EligibleSets:
    """Numbers the sets as they are met, from 1; 0 is everything, where a row names nothing."""

    def __init__(self, column: str | None, slots: Mapping[str, Vocabulary]) -> None:
        self._column, self._slots = column, list(slots.values())
        self._numbers: dict[Shown, int] = {}

    def read(self, batch: CheckedBatch, action: NDArray[Any]) -> NDArray[np.int32]:
        """The number of the set of each row; those that do not hold its action are bad."""
        if self._column is None:
            return np.zeros(batch.rows, dtype=np.int32)
        found = self._code(batch.column(self._column))
        wrong = "holds no list of actions, or one that is not known"
        batch.note(self._column, wrong, found == NO_SENSE)
        strange = self._strange(found, action)
        batch.note(self._column, "does not hold the action that was taken", strange)
        return found

    def choices(self, shown: NDArray[np.int32], slot: int) -> list[int]:
        """The choices of a slot in all sets that some row has."""
        return [number for one in self._used(shown) for number in one[slot]]

    def menus(
        self, shown: NDArray[np.int32], places: Sequence[Integers] | None, everything: Shown
    ) -> tuple[tuple[Shown, ...], NDArray[np.int32]]:
        """Sets that some row has, ``everything`` before them, and the place of each row's set.

        ``everything`` is all choices of all slots, also those that are no longer active;
        ``places`` are the new numbers of the choices, if they were renumbered.
        """
        menus = {everything: EVERYTHING}
        place = np.zeros(len(self._numbers) + 1, dtype=np.int32)
        for one in self._used(shown):
            new = one if places is None else _renumbered(one, places)
            place[self._numbers[one]] = menus.setdefault(new, len(menus))
        return tuple(menus), place[shown]

    def _used(self, shown: NDArray[np.int32]) -> Iterable[Shown]:
        met = list(self._numbers)
        return [met[number - 1] for number in np.unique(shown) if number != EVERYTHING]

    def _code(self, column: Any) -> NDArray[np.int32]:
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            encoded = column.dictionary_encode()
            cells = [*encoded.dictionary.to_pylist(), None]
            place = encoded.indices.fill_null(len(cells) - 1).to_numpy(zero_copy_only=False)
            numbers = np.array([self._number(cell) for cell in cells], dtype=np.int32)
            return numbers[np.asarray(place, dtype=np.int64)]
        known: dict[str, int] = {}
        found = np.empty(len(column), dtype=np.int32)
        for place, cell in enumerate(column.to_pylist()):
            key = repr(cell)
            if key not in known:
                known[key] = self._number(cell)
            found[place] = known[key]
        return found

    def _number(self, cell: Any) -> int:
        # Where all is real-valued there is nothing to choose from.
        if cell is None or (not self._slots and cell in ([], "[]")):
            return EVERYTHING
        names = eligible_names(cell)
        if names is None or len(names) != len(self._slots):
            return NO_SENSE
        shown = tuple(
            tuple(sorted({vocabulary.number(name) for name in given}))
            for given, vocabulary in zip(names, self._slots, strict=True)
        )
        if any(not numbers or numbers[0] < 0 for numbers in shown):
            return NO_SENSE
        return self._numbers.setdefault(shown, len(self._numbers) + 1)

    def _strange(self, found: NDArray[np.int32], action: NDArray[Any]) -> Booleans:
        """Which rows have an action that is known, and was not eligible."""
        strange = np.zeros(len(found), dtype=bool)
        met, order = list(self._numbers), np.argsort(found, kind="stable")
        first = np.flatnonzero(np.diff(found[order], prepend=NO_SENSE - 1))
        for rows in np.split(order, first[1:]):
            number = found[rows[0]] if rows.size else EVERYTHING
            if number > EVERYTHING:
                for slot, choices in enumerate(met[number - 1]):
                    taken = action[rows, slot]
                    strange[rows] |= ~np.isin(taken, choices) & (taken >= 0)
        return strange


def _renumbered(shown: Shown, places: Sequence[Integers]) -> Shown:
    return tuple(
        tuple(sorted(place[list(numbers)].tolist()))
        for place, numbers in zip(places, shown, strict=True)
    )
