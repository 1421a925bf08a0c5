"""Matured decisions, in the order in which they were made."""

import hashlib
from collections.abc import Sequence
from functools import partial

import msgspec
import numpy as np

from submax.live.log.lazy_rows import RowPart
from submax.live.log.pages.encoded_contexts import encoded_contexts
from submax.live.log.row_segments import MemorySegments, RowSegments
from submax.schema.columns import Columns
from submax.schema.context_schema import ContextSchema
from submax.schema.menu import EncodedAction

SEGMENT = 8192
"""Rows in a segment, which never changes once it is full."""


class TrainingRows:
    """Rows to learn from: full segments, which are kept elsewhere, and the rows after them."""

    def __init__(
        self, context: ContextSchema, slots: int, segments: RowSegments | None = None
    ) -> None:
        self.segments = MemorySegments() if segments is None else segments
        self._context = context
        self._empty = Columns.empty(context.width, slots)
        self._last = self._empty
        # Rows as they are in the log; many of them are encoded at once, which is quicker.
        self._new: list[
            tuple[msgspec.Raw, EncodedAction, float, float, Sequence[float] | None]
        ] = []

    def __len__(self) -> int:
        return len(self.segments) * SEGMENT + len(self._last.reward) + len(self._new)

    def add(
        self,
        context: msgspec.Raw,
        action: EncodedAction,
        reward: float,
        log_prob: float,
        by_slot: Sequence[float] | None = None,
    ) -> None:
        """Append a row; ``context`` is as it is in the body of a decision.

        ``by_slot`` are the rewards of the slots, if every slot has one.
        """
        self._new.append((context, action, reward, log_prob, by_slot))
        if len(self._last.reward) + len(self._new) >= SEGMENT:
            self.segments.append(self.last)
            self._last = self._empty

    @property
    def last(self) -> Columns:
        """The rows after the full segments."""
        if self._new:
            context, action, reward, log_prob, by_slot = zip(*self._new, strict=True)
            new = Columns(
                encoded_contexts(self._context, context),
                np.array(action, dtype=np.float64).reshape(len(reward), -1),
                np.array(reward, dtype=np.float64),
                np.array(log_prob, dtype=np.float64),
                None if by_slot[0] is None else np.array(by_slot, dtype=np.float64),
            )
            self._last, self._new = Columns.joined([self._last, new]), []
        return self._last

    @last.setter
    def last(self, columns: Columns) -> None:
        self._last, self._new = columns, []

    def parts(self) -> list[RowPart]:
        """Return all rows as parts, which do not change when rows are added later."""
        full = [
            RowPart(SEGMENT, partial(self.segments.read, number))
            for number in range(len(self.segments))
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
