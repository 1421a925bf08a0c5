"""Dropout masks of the two hidden layers of a value network."""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Mask: TypeAlias = NDArray[np.float32]


def dropout_masks(
    shape: tuple[int, int, int], dropout: float, rng: np.random.Generator
) -> tuple[Mask, Mask]:
    """Draw a mask for each layer: 0 for a unit that is left out, 1 / (1 − dropout) otherwise.

    ``shape`` is ``(replicas, masks, units)``.
    """
    kept = 1 - dropout
    drawn = rng.random((2, *shape)) < kept
    first, second = (drawn / kept).astype(np.float32)
    return first, second
