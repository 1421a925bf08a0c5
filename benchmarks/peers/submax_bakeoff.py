"""Policies of submax in the bake-off: a preset's name, or a kind with its parameters."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from bakeoff_problem import serve

import submax


class SubmaxPlayer:
    """One policy of submax with a single replica."""

    def __init__(self, parameters: Mapping[str, Any], actions: int, width: int, seed: int) -> None:
        self._policy = submax.make_policy(parameters.get("preset", parameters))
        self._rng = np.random.default_rng([seed, 1])
        problem = submax.Problem(submax.Arms(actions), context_width=width)
        self._state = self._policy.init(problem, 1, self._rng)
        self._log_prob: np.ndarray | None = None

    def decide(self, context: np.ndarray) -> np.ndarray:
        """Act for a batch."""
        action, self._log_prob = self._policy.act(self._state, context[None], self._rng)
        self._state = self._policy.record(self._state, action)
        return action[0, :, 0]

    def learn(self, context: np.ndarray, action: np.ndarray, reward: np.ndarray) -> None:
        """Update with the batch."""
        feedback = submax.Feedback(
            context[None],
            action[None, :, None],
            reward[None],
            self._log_prob,
            np.ones((1, len(action))),
        )
        self._state = self._policy.update(self._state, feedback, self._rng)


if __name__ == "__main__":
    serve(SubmaxPlayer)
