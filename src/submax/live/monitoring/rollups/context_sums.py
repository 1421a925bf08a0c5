"""Sums of decisions and rewards by the values of context fields and by choices."""

from collections.abc import Sequence
from copy import copy
from typing import Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers
from submax.live.monitoring.rollups.added_numbers import AddedNumbers
from submax.live.monitoring.rollups.field_cells import FieldCells
from submax.live.monitoring.rollups.waiting_rows import WaitingRows
from submax.schema.context import ContextSchema, Number

MOST_FIELDS = 32
"""Fields that are summed by, the first ones of the declaration."""
MOST_SLOTS = 4
"""Slots that are summed by, the first ones."""
MOST_CHOICES = 64
"""Choices of a slot that have sums of their own, in the order in which they are first chosen; all
others share one more cell. With all limits reached the sums take 17 MB."""
WARM_UP = 1000
"""Decisions whose numbers say where the edges of bins are; until then they are held in memory."""
COLUMNS = 8
"""decisions; rows that were learned from, Σ r, and, with the weight w of each row, the sums of w,
w², w r, w² r and w² r²."""


class ContextSums:
    """Sums for each field × value × slot × choice; memory is bounded.

    Sums depend on the log alone, and not on how it was read: cells are given in the order in which
    values and choices first occur, edges follow from the first decisions, and numbers are added in
    the order of the log.
    """

    def __init__(self, fields: Sequence[FieldCells], slots: int, width: int) -> None:
        """No sums; ``width`` is that of encoded contexts."""
        self.fields = list(fields)
        self.slots, self._width = min(slots, MOST_SLOTS), width
        self.choices: list[list[int]] = [[] for _ in range(self.slots)]
        self._sums: dict[tuple[int, int], Floats] = {}
        self._made = WaitingRows.none(len(self.fields), self.slots, COLUMNS - 1)
        self._learned = WaitingRows.none(len(self.fields), self.slots, COLUMNS - 1)

    @classmethod
    def of(cls, schema: ContextSchema, slots: int) -> Self:
        """No sums for the fields of a schema."""
        fields, first = [], 0
        for name, field in zip(schema.names, schema.fields, strict=True):
            fields.append(FieldCells(name, first, field.width, isinstance(field, Number)))
            first += field.width
        return cls(fields[:MOST_FIELDS], slots, schema.width)

    def decided(self, context: NDArray[np.float32], action: Floats) -> None:
        """Count decisions that were made, in order."""
        if self._counts(context):
            self._made = self._made.joined(self._raw(context), self._chosen(action), np.empty(0))
            self._add()

    def learned(
        self, context: NDArray[np.float32], action: Floats, reward: Floats, weight: Floats
    ) -> None:
        """Count decisions that were learned from, in the order in which they matured."""
        if self._counts(context):
            weighted = weight * reward
            columns = np.ones(len(reward)), reward, weight, weight**2, weighted
            table = np.stack([*columns, weight * weighted, weighted**2], axis=1)
            self._learned = self._learned.joined(self._raw(context), self._chosen(action), table)
            self._add()

    @property
    def is_warm(self) -> bool:
        """Whether the edges of bins are final."""
        return all(field.is_ready for field in self.fields)

    def sums(self, field: int, slot: int) -> Floats:
        """The sums of a field and a slot, ``[cells, choices + 1, COLUMNS]``."""
        empty = np.zeros((self.fields[field].cells, len(self.choices[slot]) + 1, COLUMNS))
        found = self._sums.get((field, slot), empty)
        return _with_room(found, len(self.choices[slot]))

    def settled(self) -> Self:
        """A copy in which all waiting decisions are counted, with edges from those there are."""
        made = self.copy()
        made._start(made._made.raw)
        made._add()
        return made

    def copy(self) -> Self:
        """Sums to which nothing is added; arrays are shared, because none is ever changed."""
        made = copy(self)
        made.fields, made._sums = list(self.fields), dict(self._sums)
        made.choices = [list(one) for one in self.choices]
        return made

    def _counts(self, context: NDArray[np.float32]) -> bool:
        """Whether there is something to count; some readers of a log leave contexts out."""
        return bool(self.fields and self.slots and len(context)) and (
            context.shape[1] == self._width
        )

    def _raw(self, context: NDArray[np.float32]) -> NDArray[np.float32]:
        if all(field.is_number for field in self.fields):
            return context[:, [field.first for field in self.fields]]
        return np.stack([field.raw(context) for field in self.fields], axis=1)

    def _chosen(self, action: Floats) -> Integers:
        return action[:, : self.slots].astype(np.int64)

    def _add(self) -> None:
        """Add what waits, if the edges of bins are known."""
        if not self.is_warm:
            if len(self._made.raw) < WARM_UP:
                return
            self._start(self._made.raw[:WARM_UP])
        for slot in range(self.slots):
            self._note_choices(slot, self._made.chosen[:, slot])
        for number, field in enumerate(self.fields):
            self.fields[number] = field.with_values(self._made.raw[:, number])
        for slot in range(self.slots):
            self._add_to(slot, self._made, slice(0, 1))
            self._add_to(slot, self._learned, slice(1, COLUMNS))
        self._made = WaitingRows.none(len(self.fields), self.slots, COLUMNS - 1)
        self._learned = WaitingRows.none(len(self.fields), self.slots, COLUMNS - 1)

    def _start(self, raw: NDArray[np.float32]) -> None:
        """Choose the edges of bins."""
        self.fields = [
            field if field.is_ready else field.with_edges(raw[:, number])
            for number, field in enumerate(self.fields)
        ]

    def _note_choices(self, slot: int, chosen: Integers) -> None:
        known = self.choices[slot]
        if len(known) == MOST_CHOICES or not len(chosen):
            return
        found, place = np.unique(chosen, return_index=True)
        new = [one for one in found[np.argsort(place)].tolist() if one not in known]
        self.choices[slot] = [*known, *new][:MOST_CHOICES]

    def _add_to(self, slot: int, waiting: WaitingRows, columns: slice) -> None:
        """Add waiting rows to some columns of the sums of a slot."""
        if not len(waiting.raw):
            return
        known, chosen = self.choices[slot], waiting.chosen[:, slot]
        place = np.full(max([*known, int(chosen.max())]) + 1, len(known))
        place[known] = np.arange(len(known))
        table = waiting.table if len(waiting.table) else np.ones((len(chosen), 1))
        choice, added = place[chosen], AddedNumbers(table.T)
        by_field = np.ascontiguousarray(waiting.raw.T)
        for number, field in enumerate(self.fields):
            sums = self.sums(number, slot).copy()
            cell = field.cell_of(by_field[number]) * sums.shape[1] + choice
            before = sums[..., columns].reshape(-1, table.shape[1])
            sums[..., columns] = added.added_to(before, cell).reshape(*sums.shape[:2], -1)
            self._sums[number, slot] = sums

    def to_record(self) -> "ContextSumsRecord":
        """What ``restore`` needs."""
        sums = {f"{field} {slot}": self.sums(field, slot).tobytes() for field, slot in self._sums}
        waiting = [self._made.to_record(), self._learned.to_record()]
        return ContextSumsRecord(self.fields, self.slots, self._width, self.choices, sums, waiting)

    @classmethod
    def restore(cls, record: "ContextSumsRecord") -> Self:
        """The sums that were recorded."""
        made = cls(record.fields, record.slots, record.width)
        made.choices = [list(one) for one in record.choices]
        for key, data in record.sums.items():
            field, slot = map(int, key.split(" "))
            shape = made.fields[field].cells, -1, COLUMNS
            made._sums[field, slot] = np.frombuffer(data).reshape(shape)
        widths = len(made.fields), made.slots, COLUMNS - 1
        made._made, made._learned = (WaitingRows.restore(one, *widths) for one in record.waiting)
        return made


class ContextSumsRecord(msgspec.Struct, frozen=True, array_like=True):
    """The state of ``ContextSums`` as it is stored."""

    fields: list[FieldCells]
    slots: int
    width: int
    choices: list[list[int]]
    sums: dict[str, bytes]
    waiting: list[tuple[bytes, bytes, bytes]]


def _with_room(sums: Floats, choices: int) -> Floats:
    """The sums with a column for each choice and one for all others, which stays the last."""
    missing = choices + 1 - sums.shape[1]
    if missing == 0:
        return sums
    # Before the last choice has its own column nothing was added to that of the others.
    return np.pad(sums, [(0, 0), (0, missing), (0, 0)])
