import re
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from refusals import raises_code
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from logs import log_of_arrays
from submax import Arms, Discrete, Memory, Problem, make_policy
from submax.bandit.store import open_store
from submax.core.errors import counted_fallbacks
from submax.estimators.classifier import Classifier
from submax.estimators.counting import Counting
from submax.evaluation.learning import learn
from submax.models.classifiers import Unpredicted
from submax.schema.trained_policy import TrainedPolicy
from submax.server.service import Service
from submax.simulation.experiment import cells, parse
from submax.simulation.runner import run_cell
from submax.testing.problems import (
    PROBLEMS,
    SCALED,
    some_contexts,
    some_feedback,
)

REPLICAS = 3


class Tabular:
    """Repeats the share of each class among the rows that are equal to the one asked about."""

    def fit(self, features, target, sample_weight=None):
        weight = np.ones(len(target)) if sample_weight is None else sample_weight
        self.overall = np.bincount(target, weight)
        self.mass = {}
        for row, one, heavy in zip(features, target, weight, strict=True):
            mass = self.mass.setdefault(row.tobytes(), np.zeros(len(self.overall)))
            mass[one] += heavy
        return self

    def predict_proba(self, features):
        found = np.stack([self.mass.get(row.tobytes(), self.overall) for row in features])
        return found / found.sum(axis=1, keepdims=True)


class Silent(Tabular):
    """Gives no probabilities where the first number is negative."""

    def predict_proba(self, features):
        found = super().predict_proba(features)
        found[features[:, 0] < 0] = np.nan
        return found


def fitted(estimator, problem, pieces, seed):
    rng = np.random.default_rng(seed)
    params = estimator.init(problem, len(pieces[0].reward), rng)
    for piece in pieces:
        params = estimator.fit(params, piece, rng)
    return params


def weighted(feedback, seed):
    rng = np.random.default_rng((seed, 7))
    return feedback._replace(weight=rng.choice([0.0, 0.5, 2.0], size=feedback.weight.shape))


def listed(estimator, params, context):
    return estimator.belief(params, context).prob_of_all()


WITHOUT_CONTEXT = [one for one in (*PROBLEMS, *SCALED) if one.context_width == 0]


@pytest.mark.parametrize("classifier", [Tabular, DecisionTreeClassifier])
@pytest.mark.parametrize("problem", WITHOUT_CONTEXT, ids=repr)
def test_a_saturated_classifier_counts(problem, classifier, seed):
    """One that repeats the shares of actions makes it the counting estimator."""
    feedback = weighted(some_feedback(problem, REPLICAS, 40, seed), seed)
    pieces = [feedback.rows(slice(0, 10)), feedback.rows(slice(10, None))]
    ours, theirs = Classifier(classifier(), {}, 0.3), Counting(0.3)
    found, expected = (fitted(one, problem, pieces, seed) for one in (ours, theirs))
    context = some_contexts(problem, REPLICAS, 2, seed)
    one, other = ours.belief(found, context), theirs.belief(expected, context)
    np.testing.assert_allclose(one.level_prior(), other.level_prior())
    np.testing.assert_allclose(one.observation_weights(), other.observation_weights())
    np.testing.assert_allclose(one.prob_of_all(), other.prob_of_all())
    np.testing.assert_allclose(one.values(), other.values())
    np.testing.assert_array_equal(one.levels(), other.levels())


def features_by_hand(context, level, levels):
    rows = []
    for numbers, place in zip(context, level, strict=True):
        blocks = [numbers if place == one else 0 * numbers for one in range(levels)]
        rows.append(np.concatenate([numbers, np.eye(levels)[place], *blocks]))
    return np.array(rows)


def test_a_logistic_regression_is_that_of_context_level_and_their_products(seed):
    problem = Problem(Arms(3), context_width=2, scale=Discrete((-1.0, 0.0, 2.0)))
    feedback = weighted(some_feedback(problem, 2, 60, seed), seed)
    estimator = Classifier(LogisticRegression(tol=1e-10, max_iter=10_000), smoothing=0.5)
    params = fitted(estimator, problem, [feedback], seed)
    context = some_contexts(problem, 2, 4, seed + 1)
    found = listed(estimator, params, context)
    for replica in range(2):
        weight, action = feedback.weight[replica], feedback.action[replica, :, 0]
        level = np.searchsorted([-1.0, 0.0, 2.0], feedback.reward[replica])
        rows = features_by_hand(feedback.context[replica], level, 3)
        model = clone(estimator.classifier).fit(rows, action, weight)
        for place in range(3):
            asked = model.predict_proba(features_by_hand(context[replica], [place] * 4, 3))
            count = weight[level == place].sum()
            expected = (count * asked + 0.5) / (count + 3 * 0.5)
            np.testing.assert_allclose(found[replica, :, place], expected, atol=1e-5)


def test_until_it_can_be_fitted_it_counts(seed):
    problem = Problem(Arms(3), context_width=1)
    feedback = some_feedback(problem, 1, 20, seed)
    alone = feedback._replace(action=np.ones_like(feedback.action))
    context = some_contexts(problem, 1, 4, seed)
    cases = [(Classifier(LogisticRegression()), alone)]
    cases += [(Classifier(LogisticRegression(), minimum_rows=21), feedback)]
    for estimator, given in cases:
        expected = Counting(1.0), fitted(Counting(1.0), problem, [given], seed)
        found = listed(estimator, fitted(estimator, problem, [given], seed), context)
        np.testing.assert_allclose(found, listed(*expected, context))
    enough = Classifier(LogisticRegression(), minimum_rows=20)
    found = listed(enough, fitted(enough, problem, [feedback], seed), context)
    assert np.ptp(found, axis=1).max() > 0


def test_a_row_without_probabilities_is_counted_and_said(seed):
    problem = Problem(Arms(3), context_width=1)
    feedback = some_feedback(problem, 1, 20, seed)
    estimator = Classifier(Silent())
    params = fitted(estimator, problem, [feedback], seed)
    context = np.array([[[-1.0], [1.0]]])
    with pytest.warns(Unpredicted, match="Silent gave no probabilities in 1 of 2 contexts"):
        found = listed(estimator, params, context)
    counting = Counting(1.0)
    counted = listed(counting, fitted(counting, problem, [feedback], seed), context)
    np.testing.assert_allclose(found[:, :1], counted[:, :1])
    with counted_fallbacks() as fallbacks:
        listed(estimator, params, context)
    assert fallbacks == [1]


def test_it_is_named_in_tables():
    table = {"kind": "classifier", "classifier": "sklearn.tree.DecisionTreeClassifier"}
    table |= {"parameters": {"max_depth": 2}, "memory": {"window": 100}}
    policy = make_policy({"kind": "slot-by-slot", "estimator": table})
    expected = Classifier(DecisionTreeClassifier(max_depth=2), memory=Memory(window=100))
    assert policy.estimator == expected
    for wrong in ({**table, "parameters": {"depth": 2}}, {"kind": "classifier"}):
        with raises_code("invalid-input"):
            make_policy({"kind": "slot-by-slot", "estimator": wrong})


# The classifier estimator where policies are plain data: in files, in logs, in a bandit

GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "any-classifier.md"
TREE = {
    "kind": "classifier",
    "classifier": "sklearn.tree.DecisionTreeClassifier",
    "parameters": {"max_depth": 3},
}
POLICY = {"kind": "reward-conditioned", "estimator": TREE}


def test_a_classifier_of_someones_own_needs_trust(tmp_path, monkeypatch):
    (tmp_path / "own_classifiers.py").write_text(
        "from sklearn.naive_bayes import GaussianNB\n\n\nclass Own(GaussianNB):\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    policy = {**POLICY, "estimator": {"kind": "classifier", "classifier": "own_classifiers.Own"}}
    row = np.arange(80)
    log = log_of_arrays(row % 3, row % 2, context=row[:, None], propensity=np.full(80, 1 / 3))
    learn(log, policy).write(tmp_path / "policy.safetensors")
    with raises_code("invalid-input"):
        TrainedPolicy.read(tmp_path / "policy.safetensors")
    assert TrainedPolicy.read(tmp_path / "policy.safetensors", trust=True).specification == policy
    with open_store(tmp_path / "served.db") as store, closing(Service(store)) as service:
        with raises_code("invalid-input"):
            service.create("own", {"actions": ["A", "B"], "policy": policy}, who="test")
        service.create("own", {"actions": ["A", "B"], "policy": POLICY}, who="test")


def test_the_experiment_of_the_guide_runs():
    (text,) = re.findall(r"```toml\n(.*?)```", GUIDE.read_text(encoding="utf-8"), flags=re.DOTALL)
    small = {"observations": 20, "replicas": 2, "delay": {"kind": "batched-rewards", "size": 10}}
    found = {cell.policy_name: cell for cell in cells(parse(text, "boosting").changed(**small))}
    assert set(found) == {"random", "boosting"}
    assert np.isfinite(run_cell(found["boosting"])["finals"]["regret"]).all()
