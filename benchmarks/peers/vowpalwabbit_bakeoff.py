"""Vowpal Wabbit in the bake-off: contextual bandit with action-dependent features.

The context is the shared namespace ``s`` and the action's number is the only feature of namespace
``a``; the model learns their interaction. The main effects of the context are left out, because
they add the same amount to the prediction of every action (``--ignore_linear s``). The cost is
minus the reward, as in the tutorials of Vowpal Wabbit. Each decision is drawn from the
probabilities that Vowpal Wabbit predicts, and learned with the probability of the action drawn.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from bakeoff_problem import serve
from vowpalwabbit import Workspace

BASE = "--cb_explore_adf --cb_type mtr --ignore_linear s --quiet"
BITS = 20
"""The weights are hashed to 2²⁰ places. The widest table with quadratic features needs 90,000."""


class VowpalWabbitPlayer:
    """One exploration of Vowpal Wabbit, given by its command-line options."""

    def __init__(self, parameters: Mapping[str, Any], actions: int, seed: int) -> None:
        interactions = " ".join(f"--interactions {pair}" for pair in parameters["interactions"])
        self._workspace = Workspace(
            f"{BASE} {interactions} --bit_precision {BITS} --random_seed {seed} "
            f"--learning_rate {parameters['learning_rate']} {parameters['options']}"
        )
        self._actions = [f"|a arm={number}" for number in range(actions)]
        self._rng = np.random.default_rng([seed, 1])
        self._shared: list[str] = []
        self._probability: list[float] = []

    def decide(self, context: np.ndarray) -> np.ndarray:
        """Predict the probabilities of every row and draw from them."""
        self._shared = [_shared(row) for row in context.tolist()]
        chosen = []
        self._probability = []
        for shared in self._shared:
            probabilities = np.array(self._workspace.predict([shared, *self._actions]))
            probabilities /= probabilities.sum()
            action = int(self._rng.choice(len(probabilities), p=probabilities))
            chosen.append(action)
            self._probability.append(float(probabilities[action]))
        return np.array(chosen)

    def learn(self, context: np.ndarray, action: np.ndarray, reward: np.ndarray) -> None:
        """Learn one example for each row."""
        rows = zip(self._shared, action.tolist(), reward.tolist(), self._probability, strict=True)
        for shared, taken, earned, probability in rows:
            lines = self._actions.copy()
            lines[taken] = f"0:{-earned}:{probability:.6g} {lines[taken]}"
            self._workspace.learn([shared, *lines])


def _shared(row: list[float]) -> str:
    features = (f"{number}:{value:.5g}" for number, value in enumerate(row) if value != 0.0)
    return f"shared |s {' '.join(features)}"


if __name__ == "__main__":
    serve(lambda parameters, actions, width, seed: VowpalWabbitPlayer(parameters, actions, seed))
