"""MABWiser in the bake-off: LinUCB, LinTS, LinGreedy, trees and neighbours, whole batches at once.

Its regressions have no intercept, so a column of ones is added to the context. The first batch is
random, because MABWiser predicts nothing before a fit. ``near`` names a neighbourhood, a decision
tree for each arm or the nearest rows, in which the policy ignores the context.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from bakeoff_problem import serve
from mabwiser.mab import MAB, LearningPolicy, NeighborhoodPolicy


class MABWiserPlayer:
    """One policy of MABWiser."""

    def __init__(self, parameters: Mapping[str, Any], actions: int, seed: int) -> None:
        settings = dict(parameters)
        near, of_near = settings.pop("near", None), settings.pop("near_parameters", {})
        policy = getattr(LearningPolicy, settings.pop("policy"))(**settings)
        around = None if near is None else getattr(NeighborhoodPolicy, near)(**of_near)
        self._bandit = MAB(list(range(actions)), policy, around, seed=seed)
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
