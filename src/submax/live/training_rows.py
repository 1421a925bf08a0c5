"""Matured decisions, in the order in which they were made."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats

SEGMENT = 8192
"""Rows that are kept together, once and for all."""


class Columns(NamedTuple):
    """``context [n, D]`` as encoded, ``action [n, S]`` by number; the others are ``[n]``."""

    context: NDArray[np.float32]
    action: Floats
    reward: Floats
    log_prob: Floats

    @classmethod
    def empty(cls, width: int, slots: int) -> "Columns":
        """No rows."""
        return cls(
            np.zeros((0, width), dtype=np.float32),
            np.zeros((0, slots)),
            np.zeros(0),
            np.zeros(0),
        )

    @property
    def hash(self) -> str:
        """The hash of all values."""
        digest = hashlib.sha256()
        for column in self:
            digest.update(repr((column.shape, column.dtype.str)).encode())
            digest.update(np.ascontiguousarray(column).tobytes())
        return digest.hexdigest()


class TrainingRows:
    """Full segments, which never change, and the rows behind them."""

    def __init__(self, width: int, slots: int) -> None:
        self.full: list[Columns] = []
        self._empty = Columns.empty(width, slots)
        self._last = self._empty
        self._new: list[tuple[Floats, Sequence[float], float, float]] = []

    def __len__(self) -> int:
        return len(self.full) * SEGMENT + len(self._last.reward) + len(self._new)

    def add(self, context: Floats, action: Sequence[float], reward: float, log_prob: float) -> None:
        """One row behind the others."""
        self._new.append((context, action, reward, log_prob))
        if len(self._last.reward) + len(self._new) >= SEGMENT:
            self.full.append(self.last)
            self._last = self._empty

    @property
    def last(self) -> Columns:
        """The rows behind the full segments."""
        if self._new:
            context, action, reward, log_prob = zip(*self._new, strict=True)
            new = Columns(
                np.array(context, dtype=np.float32).reshape(len(reward), -1),
                np.array(action, dtype=np.float64).reshape(len(reward), -1),
                np.array(reward, dtype=np.float64),
                np.array(log_prob, dtype=np.float64),
            )
            self._last, self._new = _joined([self._last, new]), []
        return self._last

    @last.setter
    def last(self, columns: Columns) -> None:
        self._last, self._new = columns, []

    def columns(self) -> Columns:
        """All rows."""
        return _joined([*self.full, self.last])


def _joined(parts: Sequence[Columns]) -> Columns:
    if len(parts) == 1:
        return parts[0]
    return Columns(*(np.concatenate(column) for column in zip(*parts, strict=True)))
