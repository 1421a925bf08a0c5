"""Numbers of the kinds of events that are frequent in logs."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

KINDS = {"reward": 0, "decision": 1, "activation": 2, "tick": 3}
"""The numbers are stored in SQLite files, which write 0 and 1 in no byte; they must not change."""
REWARD_KIND, DECISION_KIND, ACTIVATION_KIND = (
    KINDS["reward"],
    KINDS["decision"],
    KINDS["activation"],
)
OTHER_KIND = 255
"""The number of all other kinds in columns of events; it is never stored."""


def kind_numbers(kinds: Sequence[object]) -> NDArray[np.uint8]:
    """Return the numbers of kinds, which are given by their names or numbers.

    >>> kind_numbers(["decision", 0, "declared"]).tolist()
    [1, 0, 255]
    """
    try:
        return np.fromiter(kinds, np.uint8, len(kinds))
    except (TypeError, ValueError, OverflowError):
        known: dict[object, int] = {number: number for number in KINDS.values()}
        known.update(KINDS)
        return np.array([known.get(kind, OTHER_KIND) for kind in kinds], np.uint8)
