"""Matured decisions, in the order in which they were made."""

import hashlib
from functools import partial

from submax.live.log.rows.lazy_rows import RowPart
from submax.live.log.rows.row_segments import MemorySegments, RowSegments
from submax.schema.rows import Columns

SEGMENT = 8192
"""Rows in a segment, which never changes once it is full."""


class TrainingRows:
    """Rows to learn from: full segments, which are kept elsewhere, and the rows after them."""

    def __init__(self, width: int, slots: int, segments: RowSegments | None = None) -> None:
        self.segments = MemorySegments() if segments is None else segments
        self._empty = Columns.empty(width, slots)
        self._last = self._empty
        # Rows after ``_last``; many are joined at once, because joining copies all of them.
        self._new: list[Columns] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self.segments) * SEGMENT + self._count

    def add(self, rows: Columns) -> None:
        """Append rows."""
        while self._count + len(rows.reward) >= SEGMENT:
            cut = SEGMENT - self._count
            self._new.append(rows.rows(slice(cut)))
            rows = rows.rows(slice(cut, None))
            self.segments.append(self.last)
            self.last = self._empty
        if len(rows.reward):
            self._new.append(rows)
            self._count += len(rows.reward)

    @property
    def last(self) -> Columns:
        """The rows after the full segments."""
        if self._new:
            self._last, self._new = Columns.joined([self._last, *self._new]), []
        return self._last

    @last.setter
    def last(self, columns: Columns) -> None:
        self._last, self._new, self._count = columns, [], len(columns.reward)

    def parts(self) -> list[RowPart]:
        """Return all rows as parts, which do not change when rows are added later."""
        full = [
            RowPart(SEGMENT, partial(self.segments.read, number), key)
            for number, key in enumerate(self.segments.hashes)
        ]
        return [*full, RowPart.of(self.last)]

    def columns(self) -> Columns:
        """Return all rows at once."""
        return Columns.joined([part.read() for part in self.parts()])

    @property
    def hash(self) -> str:
        """A hash of all rows, computed from the hashes of the segments."""
        digest = hashlib.sha256()
        for one in (*self.segments.hashes, self.last.hash):
            digest.update(one.encode())
        return digest.hexdigest()

    def clear(self) -> None:
        """Forget all rows, which are in memory."""
        self.segments, self.last = MemorySegments(), self._empty
