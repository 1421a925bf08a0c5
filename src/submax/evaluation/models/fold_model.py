"""The contract of a model of the rewards that was fitted without one fold of the rows."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Floats


class FoldModel(Protocol):
    """Predicts the reward q̂(x, a) of actions in contexts."""

    def features(self, context: NDArray[np.float32]) -> Floats:
        """Return what the model computes once for encoded contexts, ``[n, D] -> [n, F]``."""

    def predict(self, features: Floats, action: NDArray[Any], powers: Floats) -> Floats:
        """Return q̂ for one action in each row; ``powers`` are those of its real-valued parts."""

    def expected(self, features: Floats, table: Floats, slot_tables: Sequence[Floats]) -> Floats:
        """Return Σ_a π(a | x) q̂(x, a) for a policy, ``[n]``.

        ``table [n, M]`` has the probabilities of all joint actions, and ``slot_tables`` those of
        the choices within each slot.
        """
