"""Standardization of contexts for networks."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats
from submax.core.memory.buffer import Buffer
from submax.core.running.stored import stored

CUT_OFF = 5.0
"""Features are clipped at this many standard deviations from their mean: a normal feature hardly
ever lies beyond, and a single outlier cannot dominate the training.
"""
NUMBERS_AT_ONCE = 2**20
"""Squared deviations are summed over blocks of about this many numbers, which bounds memory."""
CONSTANT = 1e-6
"""If the deviation of a feature is below this share of its mean, the feature counts as constant:
float32 has about 7 digits."""


@stored("context-scaling")
class ContextScaling(NamedTuple):
    """Parameters of z = min(max((c − mean) · factor, −limit), limit), each ``[R, 1, D]``.

    By default each feature of z has the standard deviation 1 / √D, so that z is about as long as a
    one-hot action for any number of features D. With ``largest`` in ``of``, a feature keeps its own
    deviation if this lies between 1 / √D and ``largest``. The factor of a constant feature is 0.
    """

    mean: NDArray[np.float32]
    factor: NDArray[np.float32]
    limit: NDArray[np.float32]

    @classmethod
    def of(cls, buffer: Buffer, largest: float = 0.0) -> Self:
        """Return the scaling for the rows of a buffer, for each replica separately."""
        count = np.maximum(buffer.filled, 1)[:, None, None]
        # Behind the rows of a replica the contexts are zero, so the sum needs no mask.
        mean = buffer.context.sum(axis=1, keepdims=True, dtype=np.float64) / count
        deviation = np.sqrt(_squares(buffer, mean) / count)
        varies = deviation > CONSTANT * np.abs(mean)
        least = 1 / np.sqrt(max(buffer.context.shape[2], 1))
        wanted = np.clip(deviation, least, max(largest, least))
        factor = np.where(varies, wanted / np.where(varies, deviation, 1.0), 0.0)
        parts = (mean, factor, CUT_OFF * wanted)
        return cls(*(part.astype(np.float32) for part in parts))

    def scaled(self, context: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
        """Return standardized and clipped contexts: ``[R, n, D] -> [R, n, D]``."""
        apart = (context - self.mean).astype(np.float32) * self.factor
        # As ``np.clip`` does, which takes twice as long for a single context.
        cut: NDArray[np.float32] = np.minimum(np.maximum(apart, -self.limit), self.limit)
        return cut

    def where(self, chosen: Booleans, other: "ContextScaling | None") -> "ContextScaling":
        """Return this scaling in the replicas ``chosen [R]``, and the other, if any, elsewhere."""
        if other is None:
            return self
        here = chosen[:, None, None]
        return ContextScaling(*(np.where(here, *both) for both in zip(self, other, strict=True)))


def _squares(buffer: Buffer, mean: Floats) -> Floats:
    """Return Σ (c − mean)² over the rows of each replica, ``[R, 1, D]``."""
    replicas, rows, width = buffer.context.shape
    total = np.zeros((replicas, 1, width))
    step = max(1, NUMBERS_AT_ONCE // max(replicas * width, 1))
    for begin in range(0, rows, step):
        part = slice(begin, begin + step)
        place = np.arange(rows)[part]
        there = (place < buffer.filled[:, None])[..., None]
        total += ((buffer.context[:, part] - mean) ** 2).sum(axis=1, keepdims=True, where=there)
    return total
