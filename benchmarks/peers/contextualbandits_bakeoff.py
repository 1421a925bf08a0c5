"""contextualbandits in the bake-off: one model for every action, and an exploration on top.

Policies with logistic regressions, forests or boosted trees are fitted again to all rows after
every batch; the linear ones are updated. Each policy gets ``beta_prior="auto"``, as the
documentation recommends. The first batch is random.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from bakeoff_problem import serve
from contextualbandits import online
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression

UPDATED = ("LinUCB", "LinTS")
"""Policies with sufficient statistics, for which an update equals a fit to all rows."""
BASES = {"forest": RandomForestClassifier, "boosting": HistGradientBoostingClassifier}
"""Models that a cell names by ``base``, with their parameters in ``base_parameters``."""
BOOTSTRAPPED = ("BootstrappedTS", "BootstrappedUCB")
"""Policies with two settings for the number of threads instead of one."""
ITERATIONS = 1000
"""Limit of a logistic regression's solver, which ends earlier unless a fit is very ill-posed."""


class ContextualBanditsPlayer:
    """One policy of contextualbandits."""

    def __init__(self, parameters: Mapping[str, Any], actions: int, seed: int) -> None:
        settings = dict(parameters)
        policy = settings.pop("policy")
        if "C" in settings:
            strength = settings.pop("C")
            settings["base_algorithm"] = LogisticRegression(C=strength, max_iter=ITERATIONS)
        if "base" in settings:
            model, given = BASES[settings.pop("base")], settings.pop("base_parameters", {})
            settings["base_algorithm"] = model(random_state=seed, **given)
        # The default of some policies is all cores; the cells already run side by side.
        jobs = ("njobs_arms", "njobs_samples") if policy in BOOTSTRAPPED else ("njobs",)
        settings |= dict.fromkeys(jobs, 1)
        # Some policies refuse 0 as random_state.
        self._policy = getattr(online, policy)(
            nchoices=actions, beta_prior="auto", random_state=seed + 1, **settings
        )
        self._updated = policy in UPDATED
        self._actions = actions
        self._rng = np.random.default_rng([seed, 1])
        self._history: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def decide(self, context: np.ndarray) -> np.ndarray:
        """Predict a batch; the first one is random."""
        if not self._history:
            return self._rng.integers(self._actions, size=len(context))
        return np.asarray(self._policy.predict(context)).astype(np.int64)

    def learn(self, context: np.ndarray, action: np.ndarray, reward: np.ndarray) -> None:
        """Update with the batch, or fit again to all rows."""
        self._history.append((context, action, reward))
        if self._updated:
            self._policy.partial_fit(context, action, reward)
        else:
            self._policy.fit(*(np.concatenate(part) for part in zip(*self._history, strict=True)))


if __name__ == "__main__":
    serve(
        lambda parameters, actions, width, seed: ContextualBanditsPlayer(parameters, actions, seed)
    )
