"""Open Bandit Pipeline: ``speed`` on the simulated log below, ``tables FOLDER`` on logs in files.

Both print lines of JSON. Intervals are those of the bootstrap, with 100 resamples by default.
"""

import json
import sys
import time
import warnings
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

ROWS, ACTIONS = 1_000_000, 10
FOLDS = 3


def arrays() -> dict[str, np.ndarray]:
    """The log of ``evaluation.py``, the same for us and for the peer.

    Actions, rewards and propensities ``[n]``; a policy and a reward model ``[n, K]``.
    """
    rng = np.random.default_rng(2024)
    logging = 0.1 / ACTIONS + 0.9 * rng.dirichlet(np.ones(ACTIONS), ROWS)
    policy = rng.dirichlet(np.ones(ACTIONS), ROWS)
    action = (logging.cumsum(axis=1) < rng.random((ROWS, 1))).sum(axis=1).clip(0, ACTIONS - 1)
    probability = 0.1 + 0.05 * action
    row = np.arange(ROWS)
    return {
        "action": action,
        "reward": (rng.random(ROWS) < probability).astype(np.float64),
        "propensity": logging[row, action],
        "policy": policy,
        "model": np.clip(0.1 + 0.05 * np.arange(ACTIONS) + rng.normal(0, 0.1, policy.shape), 0, 1),
    }


def speed() -> None:
    """Print the estimates, and the processor time with their intervals."""
    from obp import ope

    log = arrays()
    feedback = {
        "n_rounds": ROWS,
        "n_actions": ACTIONS,
        "action": log["action"],
        "reward": log["reward"],
        "pscore": log["propensity"],
        "position": np.zeros(ROWS, dtype=int),
    }
    estimators = [
        ope.ReplayMethod(),
        ope.InverseProbabilityWeighting(),
        ope.SelfNormalizedInverseProbabilityWeighting(),
        ope.DirectMethod(),
        ope.DoublyRobust(),
        ope.SwitchDoublyRobust(tau=50.0),
        ope.DoublyRobustWithShrinkage(lambda_=100.0),
    ]
    evaluation = ope.OffPolicyEvaluation(bandit_feedback=feedback, ope_estimators=estimators)
    given = {
        "action_dist": log["policy"][:, :, None],
        "estimated_rewards_by_reg_model": log["model"][:, :, None],
    }
    begin = time.process_time()
    values = evaluation.estimate_policy_values(**given)
    evaluation.estimate_intervals(**given, random_state=0)
    spent, version = time.process_time() - begin, metadata.version("obp")
    print(json.dumps({"version": version, "seconds": spent, "values": values}))


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
    speed() if sys.argv[1] == "speed" else tables(sys.argv[2])
