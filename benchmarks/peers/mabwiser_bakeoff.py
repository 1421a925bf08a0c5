"""MABWiser in the bake-off: LinUCB, LinTS and LinGreedy, whole batches at once.

Its regressions have no intercept, so that a column of ones is added to the context. The first batch
is random, because MABWiser predicts nothing before a fit.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from bakeoff_problem import serve
from mabwiser.mab import MAB, LearningPolicy


class MABWiserPlayer:
    """One linear policy of MABWiser."""

    def __init__(self, parameters: Mapping[str, Any], actions: int, seed: int) -> None:
        settings = {key: value for key, value in parameters.items() if key != "policy"}
        policy = getattr(LearningPolicy, parameters["policy"])(**settings)
        self._bandit = MAB(list(range(actions)), policy, seed=seed)
        self._actions = actions
        self._rng = np.random.default_rng([seed, 1])
        self._fitted = False

    def decide(self, context: np.ndarray) -> np.ndarray:
        """Predict a batch; the first one is random."""
        if not self._fitted:
            return self._rng.integers(self._actions, size=len(context))
        # For a single row, predict returns the action itself instead of a list.
        return np.atleast_1d(self._bandit.predict(_with_intercept(context)))

    def learn(self, context: np.ndarray, action: np.ndarray, reward: np.ndarray) -> None:
        """Fit a batch."""
        fit = self._bandit.partial_fit if self._fitted else self._bandit.fit
        fit(action, reward, _with_intercept(context))
        self._fitted = True


def _with_intercept(context: np.ndarray) -> np.ndarray:
    return np.concatenate([np.ones((len(context), 1)), context], axis=1)


if __name__ == "__main__":
    serve(lambda parameters, actions, width, seed: MABWiserPlayer(parameters, actions, seed))
