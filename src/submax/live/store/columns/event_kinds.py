"""Numbers of the kinds of events that are frequent in logs."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

KINDS = {"reward": 0, "decision": 1, "activation": 2, "tick": 3}
"""The numbers are stored in SQLite files, so that they must not change."""
REWARD_KIND, DECISION_KIND, ACTIVATION_KIND = (
    KINDS["reward"],
    KINDS["decision"],
    KINDS["activation"],
)
OTHER_KIND = 255
"""The number of all other kinds; in a SQLite file the name of such a kind is stored too."""


def kind_numbers(kinds: Sequence[str]) -> NDArray[np.uint8]:
    """Return the numbers of kinds, which are given by their names.

    >>> kind_numbers(["decision", "reward", "declared"]).tolist()
    [1, 0, 255]
    """
    return np.array([KINDS.get(kind, OTHER_KIND) for kind in kinds], np.uint8)
