"""Standardization of contexts for policies."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from submax.core.arrays import Booleans, Floats
from submax.core.serialization import stored
from submax.schema.columns import Columns


@stored("standardization")
class Standardization(NamedTuple):
    """Shift and scale of the numbers of a context, ``[D]`` each; categories are not changed."""

    mean: Floats
    scale: Floats

    @classmethod
    def of(cls, parts: Iterable[Columns], numeric: Sequence[bool]) -> "Standardization":
        """Return the standardization by mean and standard deviation of the training rows."""
        which: Booleans = np.array(numeric, dtype=bool)
        count = sum(len(part.reward) for part in parts)
        if count == 0 or not which.any():
            return cls(np.zeros(len(which)), np.ones(len(which)))
        mean = np.sum([part.context.sum(axis=0, dtype=np.float64) for part in parts], axis=0)
        mean = np.where(which, mean / count, 0.0)
        square = np.sum([((part.context - mean) ** 2).sum(axis=0) for part in parts], axis=0)
        deviation = np.sqrt(square / count)
        # Contexts are float32: a smaller deviation is a rounding error.
        varies = which & (deviation > 1e-7 * np.abs(mean))
        return cls(mean, np.where(varies, deviation, 1.0))

    def apply(self, context: Floats) -> Floats:
        """Return standardized contexts, ``[..., D]``."""
        applied: Floats = (context - self.mean) / self.scale
        return applied
