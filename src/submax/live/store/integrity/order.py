"""The order of events that were read."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from submax.core.errors import InputError


def check_order(after: int, positions: Sequence[int] | NDArray[np.int64]) -> None:
    """Refuse positions that do not rise: whoever reads on after the last one would never end.

    ``after`` is the position after which they were read.
    """
    known = np.asarray(positions, np.int64)
    if len(known) and (known[0] <= after or (known[1:] <= known[:-1]).any()):
        raise InputError(
            f"the events after position {after} are not in order, so that the store is damaged: "
            "run submax doctor, or restore a backup"
        )
