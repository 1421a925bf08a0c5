"""The numbers of every row of a log that off-policy estimators need about one policy."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from submax.core.arrays import Booleans, Floats
from submax.evaluation.logs.sessions import TrajectoryWeights


class Evidence(NamedTuple):
    """The evidence of n rows about a policy π; arrays are ``[n]``.

    A row has context x, action a, reward r and propensity p. ``weight`` is π(a | x) / p and
    ``probability`` is π(a | x). ``predicted`` is q̂(x, a), the prediction of a reward model that was
    fitted to other rows, and ``expected`` is Σ_a' π(a' | x) q̂(x, a'). In a log of several slots
    ``slot_weight [n, S]`` is π_s(a_s | x) / p_s, the weight of each slot's choice by itself.
    ``bounds`` are the lowest and the highest possible reward, if they are known. If actions
    have features, ``group_weight`` is π(e | x) / p(e | x) of the group e of the row's action.
    ``counts`` is the number of equal decisions that each row stands for; None if it is one. In a
    log of sessions ``trajectory`` are the products of weights within each session.
    """

    reward: Floats
    weight: Floats
    probability: Floats
    predicted: Floats
    expected: Floats
    slot_weight: Floats | None = None
    bounds: tuple[float, float] | None = None
    group_weight: Floats | None = None
    counts: Floats | None = None
    trajectory: TrajectoryWeights | None = None

    def reach(self, weight: Floats, corrects_model: bool = False) -> tuple[float, float]:
        """Return the smallest and the largest possible w r for all weights and rewards.

        With ``corrects_model`` the terms are Σ_a' π(a' | x) q̂(x, a') + w (r − q̂).
        """
        observed = (float(self.reward.min()), float(self.reward.max()))
        low, high = observed if self.bounds is None else self.bounds
        if corrects_model:
            # Row by row: a row with a large weight and a high prediction cannot reach far upward.
            ends = self.expected + weight * (np.array([[low], [high]]) - self.predicted)
            return float(ends.min()), float(ends.max())
        ends = np.outer([weight.min(), weight.max(), 0.0], [low, high])
        return float(ends.min()), float(ends.max())

    def rows(self, mask: Booleans) -> "Evidence":
        """Return the evidence of some of the rows."""
        arrays: dict[str, Any] = {
            name: values[mask]
            for name, values in self._asdict().items()
            if isinstance(values, np.ndarray)
        }
        sessions = self.trajectory
        if sessions is not None:
            sessions = TrajectoryWeights(*(values[mask] for values in sessions))
        return self._replace(**arrays, trajectory=sessions)

    @classmethod
    def joined(cls, parts: "Sequence[Evidence]") -> "Evidence":
        """Return the evidence of several parts of a log as one, in the order given."""
        slots = [part.slot_weight for part in parts if part.slot_weight is not None]
        counts = [part.counts for part in parts if part.counts is not None]
        groups = [part.group_weight for part in parts if part.group_weight is not None]
        return cls(
            reward=np.concatenate([part.reward for part in parts]),
            weight=np.concatenate([part.weight for part in parts]),
            probability=np.concatenate([part.probability for part in parts]),
            predicted=np.concatenate([part.predicted for part in parts]),
            expected=np.concatenate([part.expected for part in parts]),
            slot_weight=np.concatenate(slots) if slots else None,
            bounds=parts[0].bounds,
            group_weight=np.concatenate(groups) if groups else None,
            counts=np.concatenate(counts) if counts else None,
        )
