"""Contexts as networks are given them."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats
from submax.core.memory.buffer import Buffer
from submax.core.running.stored import stored

CUT_OFF = 5.0
"""Standard deviations from the mean at which a feature is cut off: few values of a normal feature
lie beyond, and one row far out cannot decide how a network is trained.
"""
NUMBERS_AT_ONCE = 2**20
"""About so many features are looked at together, so that the memory needed is bounded."""
CONSTANT = 1e-6
"""A feature whose deviation is below this share of its size is constant but for rounding."""


@stored("context-scaling")
class ContextScaling(NamedTuple):
    """z = min(max((c − mean) · factor, −limit), limit), each ``[R, 1, D]``.

    The deviation of z is 1 / √D, so that z is about as long as a one-hot action whatever the number
    of features, or that of c if it lies between 1 / √D and the largest that is asked for. The
    factor is 0 for a feature that is constant.
    """

    mean: NDArray[np.float32]
    factor: NDArray[np.float32]
    limit: NDArray[np.float32]

    @classmethod
    def of(cls, buffer: Buffer, largest: float = 0.0) -> Self:
        """Mean and deviation of each feature over the rows of each replica."""
        count = np.maximum(buffer.filled, 1)[:, None, None]
        # Beyond the rows of a replica its contexts are zero.
        mean = buffer.context.sum(axis=1, keepdims=True, dtype=np.float64) / count
        deviation = np.sqrt(_squares(buffer, mean) / count)
        varies = deviation > CONSTANT * np.abs(mean)
        least = 1 / np.sqrt(max(buffer.context.shape[2], 1))
        wanted = np.clip(deviation, least, max(largest, least))
        factor = np.where(varies, wanted / np.where(varies, deviation, 1.0), 0.0)
        parts = (mean, factor, CUT_OFF * wanted)
        return cls(*(part.astype(np.float32) for part in parts))

    def scaled(self, context: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
        """``[R, n, D] -> [R, n, D]``."""
        apart = (context - self.mean).astype(np.float32) * self.factor
        cut: NDArray[np.float32] = np.clip(apart, -self.limit, self.limit)
        return cut

    def where(self, chosen: Booleans, other: "ContextScaling | None") -> "ContextScaling":
        """Put two together: the new one in the replicas ``chosen [R]``, else the other, if any."""
        if other is None:
            return self
        here = chosen[:, None, None]
        return ContextScaling(*(np.where(here, *both) for both in zip(self, other, strict=True)))


def _squares(buffer: Buffer, mean: Floats) -> Floats:
    """Σ (c − mean)² over the rows of each replica, ``[R, 1, D]``, some rows at a time."""
    replicas, rows, width = buffer.context.shape
    total = np.zeros((replicas, 1, width))
    step = max(1, NUMBERS_AT_ONCE // max(replicas * width, 1))
    for begin in range(0, rows, step):
        part = slice(begin, begin + step)
        place = np.arange(rows)[part]
        there = (place < buffer.filled[:, None])[..., None]
        total += ((buffer.context[:, part] - mean) ** 2).sum(axis=1, keepdims=True, where=there)
    return total
