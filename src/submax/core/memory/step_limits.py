"""How many steps a training takes at most if held-out rows decide when it stops."""

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Integers
from submax.core.memory.held_out import MIN_ROWS_TO_HOLD_OUT
from submax.core.memory.training import Training

STEPS_WITHOUT_HELD_OUT = 50
"""Number of steps for a replica with too few rows to hold any out."""
LOWEST_STEP_LIMIT = 500
EPOCHS = 20
HIGHEST_STEP_LIMIT = 4000
"""The limit on steps is EPOCHS passes over the rows, but at least LOWEST_STEP_LIMIT and at most
HIGHEST_STEP_LIMIT. The highest limit bounds the cost of a refit."""
LENGTHENED = 10
"""With steps="converged" the limit is this many times as high, because nobody waits for a refit."""


def most_steps(filled: Integers, training: Training) -> NDArray[np.int32]:
    """Return the largest number of steps of a refit: ``[R]``."""
    lengthened = LENGTHENED if training.steps == "converged" else 1
    passes = lengthened * np.clip(
        EPOCHS * filled // training.batch, LOWEST_STEP_LIMIT, HIGHEST_STEP_LIMIT
    )
    return np.where(filled < MIN_ROWS_TO_HOLD_OUT, STEPS_WITHOUT_HELD_OUT, passes).astype(np.int32)
