"""Open Bandit Pipeline on logs that logs/against_obp.py has written as arrays."""

import json
import sys
import warnings
from importlib import metadata
from pathlib import Path

import numpy as np
from obp.ope import (
    DoublyRobust,
    RegressionModel,
    SelfNormalizedInverseProbabilityWeighting,
)
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

MODELS = {
    "dr, logistic": lambda: LogisticRegression(max_iter=300, C=100),
    "dr, boosted": lambda: HistGradientBoostingClassifier(max_iter=60),
}
FOLDS = 3


def main() -> None:
    """Print a line of JSON for each log: the estimates with bootstrap intervals by estimator."""
    warnings.simplefilter("ignore")
    for path in sorted(Path(sys.argv[1]).glob("*.npz")):
        log = np.load(path)
        policy = log["policy"][:, :, None]
        given = {
            "reward": log["reward"].astype(float),
            "action": log["action"],
            "pscore": log["propensity"],
            "action_dist": policy,
            "position": np.zeros(len(policy), dtype=int),
        }
        found = {"snips": of(SelfNormalizedInverseProbabilityWeighting(), given)}
        for name, base in MODELS.items():
            model = RegressionModel(n_actions=policy.shape[1], base_model=base())
            predicted = model.fit_predict(
                context=log["context"],
                action=log["action"],
                reward=log["reward"],
                n_folds=FOLDS,
                random_state=0,
            )
            found[name] = of(DoublyRobust(), {**given, "estimated_rewards_by_reg_model": predicted})
        print(json.dumps({"log": path.stem, "version": metadata.version("obp"), "found": found}))


def of(estimator: object, given: dict[str, np.ndarray]) -> list[float]:
    """The value and both ends of the interval."""
    value = estimator.estimate_policy_value(**given)
    ends = estimator.estimate_interval(**given, random_state=0)
    return [value, ends["95.0% CI (lower)"], ends["95.0% CI (upper)"]]


if __name__ == "__main__":
    main()
