"""Matured decisions, in the order in which they were made."""

from collections.abc import Sequence

import numpy as np

from submax.core.arrays import Floats
from submax.schema.columns import Columns

SEGMENT = 8192
"""Rows in a segment, which is one blob of the store and never changes once it is full."""


class TrainingRows:
    """Rows to learn from: full segments, which never change, and the rows after them."""

    def __init__(self, width: int, slots: int) -> None:
        self.full: list[Columns] = []
        self._empty = Columns.empty(width, slots)
        self._last = self._empty
        self._new: list[tuple[Floats, Sequence[float], float, float]] = []

    def __len__(self) -> int:
        return len(self.full) * SEGMENT + len(self._last.reward) + len(self._new)

    def add(self, context: Floats, action: Sequence[float], reward: float, log_prob: float) -> None:
        """Append a row."""
        self._new.append((context, action, reward, log_prob))
        if len(self._last.reward) + len(self._new) >= SEGMENT:
            self.full.append(self.last)
            self._last = self._empty

    @property
    def last(self) -> Columns:
        """The rows after the full segments."""
        if self._new:
            context, action, reward, log_prob = zip(*self._new, strict=True)
            new = Columns(
                np.array(context, dtype=np.float32).reshape(len(reward), -1),
                np.array(action, dtype=np.float64).reshape(len(reward), -1),
                np.array(reward, dtype=np.float64),
                np.array(log_prob, dtype=np.float64),
            )
            self._last, self._new = Columns.joined([self._last, new]), []
        return self._last

    @last.setter
    def last(self, columns: Columns) -> None:
        self._last, self._new = columns, []

    def columns(self) -> Columns:
        """All rows."""
        return Columns.joined([*self.full, self.last])

    def clear(self) -> None:
        """Forget all rows."""
        self.full, self.last = [], self._empty
