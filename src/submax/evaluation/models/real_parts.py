"""The features of real-valued parts of actions in a model of the rewards."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats
from submax.evaluation.logs.log import Log

POWERS = 3
"""A real-valued part, scaled to 0 … 1, has this many powers as features: a cubic polynomial."""


def polynomial_features(log: Log, action: NDArray[Any]) -> Floats:
    """Return the powers of the real-valued parts of actions, ``[n, POWERS · intervals]``."""
    intervals = log.schema.menu.ranges
    low = np.array([one.low for one in intervals])
    width = np.array([one.high - one.low for one in intervals])
    first = len(log.schema.menu.slots)
    scaled: Floats = (action[:, first:].astype(np.float64) - low) / width
    return np.concatenate([scaled**power for power in range(1, POWERS + 1)], axis=1)
