"""Decisions that wait until the edges of bins are known."""

from typing import Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats, Integers


class WaitingRows(msgspec.Struct, frozen=True):
    """Decisions that wait to be added to sums by context.

    ``raw [n, fields]`` are numbers and indices of categories, ``chosen [n, slots]`` indices of
    choices, and ``table [n, columns]`` is what is added; it is empty for decisions that were made.
    """

    raw: NDArray[np.float32]
    chosen: Integers
    table: Floats

    @classmethod
    def none(cls, fields: int, slots: int, columns: int) -> Self:
        """No decision."""
        chosen = np.empty((0, slots), np.int64)
        return cls(np.empty((0, fields), np.float32), chosen, np.empty((0, columns)))

    def joined(self, raw: NDArray[np.float32], chosen: Integers, table: Floats) -> Self:
        """These decisions and more; an empty ``table`` stands for decisions that were made."""
        rows = np.concatenate([self.table, table]) if len(table) else self.table
        both = np.concatenate([self.raw, raw]), np.concatenate([self.chosen, chosen])
        return type(self)(*both, rows)

    def to_record(self) -> tuple[bytes, bytes, bytes]:
        """What ``restore`` needs."""
        return self.raw.tobytes(), self.chosen.tobytes(), self.table.tobytes()

    @classmethod
    def restore(
        cls, record: tuple[bytes, bytes, bytes], fields: int, slots: int, columns: int
    ) -> Self:
        """The decisions that were recorded."""
        raw, chosen, table = record
        return cls(
            np.frombuffer(raw, np.float32).reshape(-1, max(fields, 1))[:, :fields],
            np.frombuffer(chosen, np.int64).reshape(-1, max(slots, 1))[:, :slots],
            np.frombuffer(table).reshape(-1, columns),
        )
