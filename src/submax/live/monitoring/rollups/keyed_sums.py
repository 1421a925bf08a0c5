"""Rows of sums that are found by a key."""

from typing import Self

import msgspec
import numpy as np

from submax.core.arrays import Floats, Integers
from submax.live.monitoring.rollups.added_numbers import AddedNumbers

LOW_BITS = 32
"""Bits of a key below its leading part."""


class KeyedSums:
    """Rows of sums by key, of which the oldest are forgotten if there are too many.

    A key has a leading part, such as a minute, which grows with time, and a rest below 2³². Rows
    whose leading part is below ``floor`` are forgotten, and ``floor`` never falls: so the rows do
    not depend on how the additions were divided between calls.
    """

    def __init__(self, columns: int, most_cells: int, most_leading: int) -> None:
        self.keys: Integers = np.empty(0, np.int64)
        self.rows: Floats = np.empty((0, columns))
        self.floor = 0
        self._most_cells, self._most_leading = most_cells, most_leading

    def add(self, leading: Integers, rest: Integers, rows: AddedNumbers) -> None:
        """Add rows to the cells of their keys."""
        kept = leading >= self.floor
        if not kept.all():
            leading, rest, rows = leading[kept], rest[kept], rows.take(kept)
        if not len(leading):
            return
        new, cell_of = _different(leading, rest)
        # Only the cells from the lowest new key on can change, which are few if time goes on.
        start = int(np.searchsorted(self.keys, new[0]))
        changed, cell = np.unique(np.concatenate([self.keys[start:], new]), return_inverse=True)
        before = np.zeros((len(changed), self.rows.shape[1]))
        before[cell[: -len(new)]] = self.rows[start:]
        sums = rows.added_to(before, cell[-len(new) :][cell_of])
        self.keys = np.concatenate([self.keys[:start], changed])
        self.rows = np.concatenate([self.rows[:start], sums])
        self._forget()

    @property
    def leading(self) -> Integers:
        """The leading part of each key."""
        return self.keys >> LOW_BITS

    @property
    def rest(self) -> Integers:
        """The rest of each key."""
        return self.keys & ((1 << LOW_BITS) - 1)

    def _forget(self) -> None:
        """Raise the floor until neither cells nor leading parts are too many."""
        leading = self.leading
        # Counted, and not measured from the newest: an event with a wrong time, a year ahead, must
        # not make all others forgotten.
        different = np.unique(leading)
        if len(different) > self._most_leading:
            self.floor = int(different[-self._most_leading])
        if len(leading) > self._most_cells:
            # The first leading part of which all cells fit.
            self.floor = max(self.floor, int(leading[-self._most_cells - 1]) + 1)
        start = int(np.searchsorted(leading, self.floor))
        self.keys, self.rows = self.keys[start:], self.rows[start:]

    def to_record(self) -> "KeyedSumsRecord":
        """What ``restore`` needs."""
        return KeyedSumsRecord(self.floor, self.keys.tobytes(), self.rows.tobytes())

    def restore(self, record: "KeyedSumsRecord") -> Self:
        """Take the state that was recorded."""
        self.floor = record.floor
        self.keys = np.frombuffer(record.keys, np.int64)
        self.rows = np.frombuffer(record.rows).reshape(len(self.keys), self.rows.shape[1])
        return self


class KeyedSumsRecord(msgspec.Struct, frozen=True, array_like=True):
    """The state of ``KeyedSums`` as it is stored, little-endian."""

    floor: int
    keys: bytes
    rows: bytes


def _different(leading: Integers, rest: Integers) -> tuple[Integers, Integers]:
    """The different keys, sorted, and the place of each key among them."""
    low, least = int(leading.min()), int(rest.min())
    width = int(rest.max()) - least + 1
    size = (int(leading.max()) - low + 1) * width
    if size > len(leading):
        return np.unique((leading << LOW_BITS) | rest, return_inverse=True)
    # In a log, the keys of many rows are few and near each other; then a table replaces sorting.
    cell = (leading - low) * width + (rest - least)
    occurs = np.zeros(size, np.bool_)
    occurs[cell] = True
    found = occurs.nonzero()[0]
    keys = ((found // width + low) << LOW_BITS) | (found % width + least)
    return keys, (np.cumsum(occurs) - 1)[cell]
