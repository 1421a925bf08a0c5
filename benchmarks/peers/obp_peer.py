"""Open Bandit Pipeline on the logs of ``estimates.py``: a line of JSON for each file of a folder.

Intervals are those of the bootstrap, with 100 resamples by default.
"""

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

FOLDS = 3


def tables(folder: str) -> None:
    """Print the estimates and both ends of their intervals for each file of ``estimates.py``."""
    from obp import ope
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    models = {
        "dr, logistic": lambda: LogisticRegression(max_iter=300, C=100),
        "dr, boosted": lambda: HistGradientBoostingClassifier(max_iter=60),
    }
    for path in sorted(Path(folder).glob("*.npz")):
        log = np.load(path)
        policy = log["policy"][:, :, None]
        given = {
            "reward": log["reward"].astype(float),
            "action": log["action"],
            "pscore": log["propensity"],
            "action_dist": policy,
            "position": np.zeros(len(policy), dtype=int),
        }
        found = {"snips": ends(ope.SelfNormalizedInverseProbabilityWeighting(), given)}
        for name, base in models.items():
            model = ope.RegressionModel(n_actions=policy.shape[1], base_model=base())
            row = {name: log[name] for name in ("context", "action", "reward")}
            predicted = model.fit_predict(**row, n_folds=FOLDS, random_state=0)
            more = {"estimated_rewards_by_reg_model": predicted}
            found[name] = ends(ope.DoublyRobust(), given | more)
        print(json.dumps(found))


def ends(estimator: Any, given: dict[str, np.ndarray]) -> list[float]:
    """The value and both ends of the interval."""
    found = estimator.estimate_interval(**given, random_state=0)
    lower, upper = found["95.0% CI (lower)"], found["95.0% CI (upper)"]
    return [estimator.estimate_policy_value(**given), lower, upper]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    tables(sys.argv[1])
