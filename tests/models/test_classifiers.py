import sys

import numpy as np
import pytest
from refusals import raises_code
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import AdaBoostClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from submax.estimators.classifier import Classifier
from submax.models.classifiers import (
    class_by_name,
    fitted_classifier,
    resampled,
    unfitted_classifier,
)


class Plain:
    """No class of scikit-learn: it has neither get_params nor weights."""

    def __init__(self, share=0.5):
        self.share = share

    def fit(self, features, target):
        self.count = len(target)
        self.target = target
        return self

    def predict_proba(self, features):
        return np.full((len(features), 2), self.share)


def some_rows(seed, count=40, actions=3):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, 2)), rng.integers(actions, size=count)


def fitted(given, features, action, weight=None, seed=0):
    weight = np.ones(len(action)) if weight is None else weight
    return fitted_classifier(unfitted_classifier(given, {}), features, action, weight, seed)


@pytest.mark.parametrize(
    ("given", "parameters", "parameter"),
    [
        (GaussianNB, {}, "classifier"),
        (StandardScaler(), {}, "classifier"),
        (SGDClassifier(loss="hinge"), {}, "classifier"),
        (None, {}, "classifier"),
        ("nowhere_at_all.Classifier", {}, "classifier"),
        ("sklearn.no_such_module.Classifier", {}, "classifier"),
        ("sklearn.linear_model.LogisticRegresion", {}, "classifier"),
        ("sklearn.datasets.load_iris", {}, "classifier"),
        ("numpy.random.Generator", {}, "classifier"),
        ("LogisticRegression", {}, "classifier"),
        ("my file.py", {}, "classifier"),
        # Parameters that do not belong to the classifier.
        ("sklearn.linear_model.LogisticRegression", {"max_itr": 5}, "parameters"),
        ("sklearn.pipeline.Pipeline", {}, "parameters"),
        (GaussianNB(), {"var_smoothing": 1.0}, "parameters"),
    ],
)
def test_what_is_no_classifier_is_refused(given, parameters, parameter):
    with raises_code("invalid-input", parameter):
        Classifier(given, parameters)


def test_data_that_a_classifier_can_neither_be_fitted_to_nor_predict_are_refused():
    with raises_code("invalid-input"):
        fitted(CalibratedClassifierCV(GaussianNB(), cv=5), np.zeros((4, 2)), np.array([1, 1, 0, 0]))
    few = fitted(KNeighborsClassifier(n_neighbors=5), np.zeros((3, 2)), np.array([0, 1, 1]))
    with raises_code("invalid-input"):
        few.probabilities(np.zeros((1, 2)), 2)


def test_the_given_object_is_copied_and_never_changed(seed):
    given = RandomForestClassifier(n_estimators=3)
    estimator = Classifier(given)
    given.set_params(n_estimators=7)
    found = fitted_classifier(estimator.unfitted, *some_rows(seed), np.ones(40), 5)
    assert len(found.model.estimators_) == 3
    assert not hasattr(given, "classes_")
    assert not hasattr(estimator.unfitted, "classes_")
    assert given.random_state is estimator.unfitted.random_state is None
    plain = Plain()
    fitted(plain, *some_rows(seed, actions=2))
    assert vars(plain) == {"share": 0.5}


def test_estimators_are_equal_by_class_and_parameters():
    def of(given, **parameters):
        return Classifier(given, parameters)

    equal = of("sklearn.linear_model.LogisticRegression", C=2.0), of(LogisticRegression(C=2.0))
    assert equal[0] == equal[1]
    assert hash(equal[0]) == hash(equal[1])
    different = [
        of(LogisticRegression(C=2.0)),
        of(LogisticRegression(C=3.0)),
        of(GaussianNB()),
        of(GaussianNB(priors=np.array([0.5, 0.5]))),
        of(AdaBoostClassifier(DecisionTreeClassifier(max_depth=1))),
        of(AdaBoostClassifier(DecisionTreeClassifier(max_depth=2))),
        of(make_pipeline(StandardScaler(), GaussianNB())),
        of(Plain()),
        of(Plain(0.4)),
    ]
    assert len(set(different)) == len(different)
    assert of(Plain(0.4)) == of(Plain(0.4))


def test_a_random_state_that_is_not_set_is_set_from_the_seed(seed):
    features, action = some_rows(seed)
    forest = RandomForestClassifier(n_estimators=2)
    nested = make_pipeline(StandardScaler(), forest)
    for given in (forest, nested):
        fits = [fitted(given, features, action, seed=number) for number in (1, 1, 2)]
        first, again, other = (fit.probabilities(features, 3) for fit in fits)
        np.testing.assert_array_equal(first, again)
        assert not np.array_equal(first, other)
    own = fitted(forest.set_params(random_state=9), features, action, seed=1)
    assert own.model.random_state == 9


def test_weights_are_given_to_a_classifier_that_takes_them(seed):
    """A weight of 2 is a row that stands twice, and a weight of 0 one that is not there."""
    features, action = some_rows(seed)
    weight = np.random.default_rng(seed).integers(3, size=40).astype(float)
    twice = np.repeat(np.arange(40), weight.astype(int))
    pipeline = make_pipeline(DecisionTreeClassifier(random_state=0))
    for given in (DecisionTreeClassifier(random_state=0), LogisticRegression(tol=1e-8), pipeline):
        weighted = fitted(given, features, action, weight)
        repeated = fitted(given, features[twice], action[twice])
        found, expected = (one.probabilities(features, 3) for one in (weighted, repeated))
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_rows_are_drawn_in_proportion_if_weights_cannot_be_given(seed):
    rng = np.random.default_rng(seed)
    weight = rng.random(30) * (rng.random(30) < 0.7)
    expected = 30 * weight / weight.sum()
    for _ in range(50):
        times = np.bincount(resampled(weight, rng), minlength=30)
        assert times.sum() == 30
        assert np.all(np.abs(times - expected) < 1)
    draws = [np.bincount(resampled(weight, rng), minlength=30) for _ in range(2000)]
    # A number rounded down or up has a deviation of at most 1/2.
    assert np.abs(np.mean(draws, axis=0) - expected).max() < 5 * 0.5 / np.sqrt(2000)


def test_actions_become_numbers_without_gaps(seed):
    """Some libraries refuse anything else."""
    features, action = some_rows(seed, actions=2)
    found = fitted(Plain(0.25), features, 3 + 4 * action)
    assert set(found.model.target) == {0, 1}
    np.testing.assert_array_equal(found.seen, [3, 7])
    probabilities = found.probabilities(features[:1], 9)
    np.testing.assert_array_equal(probabilities, [[0, 0, 0, 0.5, 0, 0, 0, 0.5, 0]])


def test_a_class_of_scikit_learn_needs_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with raises_code("missing-extra"):
        class_by_name("sklearn.naive_bayes.GaussianNB")
