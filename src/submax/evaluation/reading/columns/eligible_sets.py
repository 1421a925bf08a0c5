"""Reads the sets of choices that were eligible in the rows of a log."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Integers
from submax.evaluation.reading.checked_batch import CheckedBatch
from submax.evaluation.reading.columns.cells import eligible_names
from submax.evaluation.reading.columns.vocabulary import Vocabulary
from submax.schema.menu import ChoiceIndices

EVERYTHING, UNREADABLE = 0, -1
"""The number of the set of all choices, and that of a cell that cannot be read."""


class EligibleSets:
    """Numbers the distinct sets in the order in which they occur, from 1.

    0 is the set of all choices, for rows whose cell is empty.
    """

    def __init__(self, column: str | None, slots: Mapping[str, Vocabulary]) -> None:
        self._column, self._slots = column, list(slots.values())
        self._numbers: dict[ChoiceIndices, int] = {}

    def read(self, batch: CheckedBatch, action: NDArray[Any]) -> NDArray[np.int32]:
        """Return the number of each row's set; a row whose action is not in its set is bad."""
        if self._column is None:
            return np.zeros(batch.rows, dtype=np.int32)
        found = self._code(batch.column(self._column))
        wrong = "is not a list of known actions"
        batch.note(self._column, wrong, found == UNREADABLE)
        ineligible = self._took_ineligible(found, action)
        batch.note(self._column, "does not contain the action that was taken", ineligible)
        return found

    def choices(self, set_numbers: NDArray[np.int32], slot: int) -> list[int]:
        """Return the choices of a slot in all sets that occur in ``set_numbers``."""
        return [index for one in self._used(set_numbers) for index in one[slot]]

    def finished(
        self,
        set_numbers: NDArray[np.int32],
        new_indices: Sequence[Integers] | None,
        everything: ChoiceIndices,
    ) -> tuple[tuple[ChoiceIndices, ...], NDArray[np.int32]]:
        """Return ``everything`` and the sets that occur, and the index of each row's set.

        ``everything`` is the set of all choices of all slots, also of inactive ones;
        ``new_indices`` are, for each slot, the new indices of the choices if they changed.
        """
        sets = {everything: EVERYTHING}
        index = np.zeros(len(self._numbers) + 1, dtype=np.int32)
        for one in self._used(set_numbers):
            new = one if new_indices is None else _reindexed(one, new_indices)
            index[self._numbers[one]] = sets.setdefault(new, len(sets))
        return tuple(sets), index[set_numbers]

    def _used(self, set_numbers: NDArray[np.int32]) -> Iterable[ChoiceIndices]:
        known = list(self._numbers)
        return [known[number - 1] for number in np.unique(set_numbers) if number != EVERYTHING]

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
        # If all parts of the action are real-valued, there are no choices to list.
        if cell is None or (not self._slots and cell in ([], "[]")):
            return EVERYTHING
        names = eligible_names(cell)
        if names is None or len(names) != len(self._slots):
            return UNREADABLE
        eligible = tuple(
            tuple(sorted({vocabulary.index(name) for name in given}))
            for given, vocabulary in zip(names, self._slots, strict=True)
        )
        if any(not indices or indices[0] < 0 for indices in eligible):
            return UNREADABLE
        return self._numbers.setdefault(eligible, len(self._numbers) + 1)

    def _took_ineligible(self, found: NDArray[np.int32], action: NDArray[Any]) -> Booleans:
        """Return which rows took a known action that was not eligible."""
        ineligible = np.zeros(len(found), dtype=bool)
        known, order = list(self._numbers), np.argsort(found, kind="stable")
        first = np.flatnonzero(np.diff(found[order], prepend=UNREADABLE - 1))
        for rows in np.split(order, first[1:]):
            number = found[rows[0]] if rows.size else EVERYTHING
            if number > EVERYTHING:
                for slot, choices in enumerate(known[number - 1]):
                    taken = action[rows, slot]
                    ineligible[rows] |= ~np.isin(taken, choices) & (taken >= 0)
        return ineligible


def _reindexed(eligible: ChoiceIndices, new_indices: Sequence[Integers]) -> ChoiceIndices:
    return tuple(
        tuple(sorted(new_index[list(indices)].tolist()))
        for new_index, indices in zip(new_indices, eligible, strict=True)
    )
