"""What a log says about one policy, row by row."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from submax.core.arrays import Floats


class Evidence(NamedTuple):
    """For each row i with context x, action a, reward r, logged with propensity p; all ``[n]``.

    ``weight`` is π(a | x) / p and ``probability`` π(a | x). A model of the rewards, fitted on
    other rows, has ``predicted`` q̂(x, a) and ``expected`` Σ_a' π(a' | x) q̂(x, a'). In a log of
    slots ``slot_weight [n, S]`` is π_s(a_s | x) / p_s for the choice in each slot alone.
    ``bounds`` are those of rewards, where they are known.
    """

    reward: Floats
    weight: Floats
    probability: Floats
    predicted: Floats
    expected: Floats
    slot_weight: Floats | None = None
    bounds: tuple[float, float] | None = None

    def widest(self, weight: Floats, corrects: bool = False) -> float:
        """The width of an interval that holds all rewards times these weights.

        Where they ``correct`` the model, of r − q̂ times the weights and what the model expects.
        """
        seen = (float(self.reward.min()), float(self.reward.max()))
        low, high = seen if self.bounds is None else self.bounds
        if corrects:
            low, high = low - float(self.predicted.max()), high - float(self.predicted.min())
        ends = np.outer([weight.min(), weight.max(), 0.0], [low, high])
        return float(np.ptp(ends) + (np.ptp(self.expected) if corrects else 0.0))

    @classmethod
    def joined(cls, parts: "Sequence[Evidence]") -> "Evidence":
        """One behind the other."""
        slots = [part.slot_weight for part in parts if part.slot_weight is not None]
        return cls(
            np.concatenate([part.reward for part in parts]),
            np.concatenate([part.weight for part in parts]),
            np.concatenate([part.probability for part in parts]),
            np.concatenate([part.predicted for part in parts]),
            np.concatenate([part.expected for part in parts]),
            np.concatenate(slots) if slots else None,
            parts[0].bounds,
        )
