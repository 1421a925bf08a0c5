"""gittins in the bake-off: ``decide`` for every row, ``learn`` when the batch's rewards are known.

gittins crosses every feature of the context with every action and fits a diagonal ridge regression
that forgets old observations; it explores epsilon-greedily, or by softmax with the callback that
its guide shows. With ``binned`` every column is given as a category, by the bin of its value: a
diagonal regression can then learn effects that are not linear in the column.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import gittins
import numpy as np
from bakeoff_problem import serve

BITS = 18
"""The features are hashed to 2¹⁸ places, a hundred times as many as the widest table needs."""
BIN_EDGES = (-1.5, -0.75, -0.25, 0.25, 0.75, 1.5)
"""In standard deviations: the edges of the bins for columns that are given as categories."""
NEVER = 1e12
"""Horizon after which a decision without a reward expires; the clock counts decisions."""


class GittinsPlayer:
    """One configuration of gittins."""

    def __init__(self, parameters: Mapping[str, Any], actions: int, seed: int) -> None:
        settings = {
            key: parameters[key] for key in ("epsilon", "forgetfulness") if key in parameters
        }
        self._state = gittins.create(bits=BITS, horizon=NEVER, **settings)
        self._candidates: list[tuple[str, dict[str, float]]] = [
            (f"arm-{number}", {}) for number in range(actions)
        ]
        self._explore = _softmax(parameters["sharpness"]) if "sharpness" in parameters else None
        self._binned = parameters.get("binned", False)
        self._salt = f"seed-{seed}"
        self._clock = 0.0
        self._pending: list[str] = []

    def decide(self, context: np.ndarray) -> np.ndarray:
        """Ask once for every row."""
        names = [f"x{number}" for number in range(context.shape[1])]
        values = np.searchsorted(BIN_EDGES, context).astype(str) if self._binned else context
        records = []
        for row in values.tolist():
            features = dict(zip(names, row, strict=True))
            self._clock += 1.0
            records.append(
                gittins.decide(
                    self._state,
                    features,
                    self._candidates,
                    self._clock,
                    self._salt,
                    explore=self._explore,
                )
            )
        self._pending = [record.decision_id for record in records]
        return np.array([record.chosen for record in records])

    def learn(self, context: np.ndarray, action: np.ndarray, reward: np.ndarray) -> None:
        """Resolve every decision with its reward."""
        for decision, earned in zip(self._pending, reward.tolist(), strict=True):
            gittins.learn(self._state, decision, earned, self._clock)


def _softmax(sharpness: float) -> Callable[[list[float], float], list[float]]:
    def explore(estimates: list[float], epsilon: float) -> list[float]:
        highest = max(estimates)
        weights = [math.exp(sharpness * (estimate - highest)) for estimate in estimates]
        total = sum(weights)
        return [weight / total for weight in weights]

    return explore


if __name__ == "__main__":
    serve(lambda parameters, actions, width, seed: GittinsPlayer(parameters, actions, seed))
