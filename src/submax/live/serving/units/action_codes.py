"""Numbers by which joint actions are told apart, whatever else is eligible."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from submax.live.serving.units.unit_numbers import mixed
from submax.schema.menu import ChoiceIndices

CACHED_SETS = 256
"""Sets of eligible choices whose codes are cached."""


@lru_cache(CACHED_SETS)
def action_codes(eligible: ChoiceIndices) -> NDArray[np.uint64]:
    """A code for each joint action, listed so that the choice of the last slot changes first.

    The code of a joint action depends on its choices only, so that a unit compares the same numbers
    when other choices come or go.
    """
    codes = np.zeros(1, dtype=np.uint64)
    for indices in eligible:
        own = np.array(indices, dtype=np.uint64)
        # Mixed before the next slot is added, since sums of indices would coincide.
        codes = (mixed(codes)[:, None] + own).ravel()
    return mixed(codes)
