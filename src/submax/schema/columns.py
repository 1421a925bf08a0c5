"""Training rows as columns of numbers."""

import hashlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats
from submax.core.running.stored import stored


@stored("columns")
class Columns(NamedTuple):
    """Training rows: encoded ``context [n, D]``, and ``action [n, S]`` as indices of choices.

    ``reward`` and ``log_prob`` are ``[n]``; ``log_prob`` is NaN if it was not logged.
    """

    context: NDArray[np.float32]
    action: Floats
    reward: Floats
    log_prob: Floats

    @classmethod
    def empty(cls, width: int, slots: int) -> "Columns":
        """Return zero rows."""
        return cls(
            np.zeros((0, width), dtype=np.float32),
            np.zeros((0, slots)),
            np.zeros(0),
            np.zeros(0),
        )

    @classmethod
    def joined(cls, parts: "Sequence[Columns]") -> "Columns":
        """Return the rows of all parts, one part after the other."""
        if len(parts) == 1:
            return parts[0]
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def rows(self, which: slice) -> "Columns":
        """Return a range of the rows."""
        return Columns(
            self.context[which], self.action[which], self.reward[which], self.log_prob[which]
        )

    @property
    def hash(self) -> str:
        """SHA-256 of all shapes, types and values."""
        digest = hashlib.sha256()
        for column in self:
            digest.update(repr((column.shape, column.dtype.str)).encode())
            digest.update(np.ascontiguousarray(column).tobytes())
        return digest.hexdigest()
