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

from submax.core.errors import InputError
from submax.models.classifiers.classifier_template import (
    ClassifierTemplate,
    resampled,
    weight_argument,
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


def refused(given, parameters=None):
    with pytest.raises(InputError) as caught:
        ClassifierTemplate.of(given, parameters or {})
    return str(caught.value)


def test_a_class_instead_of_an_object_is_refused():
    message = refused(GaussianNB)
    assert "the class GaussianNB" in message
    assert "write GaussianNB()" in message


@pytest.mark.parametrize("given", [StandardScaler(), SGDClassifier(loss="hinge"), 3, None])
def test_an_object_without_probabilities_is_refused(given):
    message = refused(given)
    assert "without the method" in message
    assert "predict_proba is allowed" in message
    assert "CalibratedClassifierCV" in message


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nowhere_at_all.Classifier", "install nowhere_at_all"),
        ("sklearn.no_such_module.Classifier", "check the name"),
        ("sklearn.linear_model.LogisticRegresion", "no such name in its module"),
        ("sklearn.datasets.load_iris", "not a class with a method fit"),
        ("numpy.random.Generator", "not a class with a method fit"),
        ("LogisticRegression", "not a dotted name"),
        ("my file.py", "not a dotted name"),
    ],
)
def test_a_name_that_leads_to_no_classifier_is_refused(name, expected):
    message = refused(name)
    assert repr(name) in message
    assert expected in message
    assert "allowed" in message


def test_an_unknown_parameter_is_refused_with_the_nearest_known_one():
    message = refused("sklearn.linear_model.LogisticRegression", {"max_itr": 5})
    assert "'max_itr'" in message
    assert "did you mean 'max_iter'?" in message


def test_parameters_beside_an_object_are_refused():
    assert "set them on the object" in refused(GaussianNB(), {"var_smoothing": 1.0})


def test_parameters_that_the_class_refuses_are_named():
    message = refused("sklearn.pipeline.Pipeline")
    assert "cannot be made from parameters {}" in message
    assert "steps" in message


def test_data_that_a_classifier_cannot_be_fitted_to_are_named(seed):
    template = ClassifierTemplate.of(CalibratedClassifierCV(GaussianNB(), cv=5), {})
    features, action = some_rows(seed, count=4, actions=2)
    action[:2] = 1
    action[2:] = 0
    with raises_code("invalid-input"):
        template.fitted(features, action, np.ones(4), 0)


def test_a_classifier_that_cannot_predict_yet_says_what_to_do(seed):
    template = ClassifierTemplate.of(KNeighborsClassifier(n_neighbors=5), {})
    fitted = template.fitted(np.zeros((3, 2)), np.array([0, 1, 1]), np.ones(3), 0)
    with raises_code("invalid-input"):
        fitted.probabilities(np.zeros((1, 2)), 2)


def test_the_given_object_is_copied_and_never_changed(seed):
    given = RandomForestClassifier(n_estimators=3)
    template = ClassifierTemplate.of(given, {})
    given.set_params(n_estimators=7)
    fitted = template.fitted(*some_rows(seed), np.ones(40), 5)
    assert len(fitted.model.estimators_) == 3
    assert not hasattr(given, "classes_")
    assert not hasattr(template.unfitted, "classes_")
    assert given.random_state is template.unfitted.random_state is None
    plain = Plain()
    ClassifierTemplate.of(plain, {}).fitted(*some_rows(seed, actions=2), np.ones(40), 5)
    assert vars(plain) == {"share": 0.5}


def test_templates_are_equal_by_class_and_parameters():
    def of(given, **parameters):
        return ClassifierTemplate.of(given, parameters)

    equal = of("sklearn.linear_model.LogisticRegression", C=2.0), of(LogisticRegression(C=2.0))
    assert equal[0] == equal[1]
    assert hash(equal[0]) == hash(equal[1])
    different = [
        of(LogisticRegression(C=2.0)),
        of(LogisticRegression(C=3.0)),
        of(LogisticRegression(C=2.0, class_weight={0: 1.0})),
        of(GaussianNB()),
        of(GaussianNB(priors=np.array([0.5, 0.5]))),
        of(AdaBoostClassifier(DecisionTreeClassifier(max_depth=1))),
        of(AdaBoostClassifier(DecisionTreeClassifier(max_depth=2))),
        of(make_pipeline(StandardScaler(), GaussianNB())),
        of(make_pipeline(StandardScaler(with_mean=False), GaussianNB())),
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
        fits = [
            ClassifierTemplate.of(given, {}).fitted(features, action, np.ones(40), number)
            for number in (1, 1, 2)
        ]
        first, again, other = (fit.probabilities(features, 3) for fit in fits)
        np.testing.assert_array_equal(first, again)
        assert not np.array_equal(first, other)
    own = ClassifierTemplate.of(forest.set_params(random_state=9), {})
    assert own.fitted(features, action, np.ones(40), 1).model.random_state == 9


def test_weights_are_given_to_a_classifier_that_takes_them(seed):
    """A weight of 2 is a row that stands twice, and a weight of 0 one that is not there."""
    features, action = some_rows(seed)
    weight = np.random.default_rng(seed).integers(3, size=40).astype(float)
    twice = np.repeat(np.arange(40), weight.astype(int))
    pipeline = make_pipeline(DecisionTreeClassifier(random_state=0))
    for given in (DecisionTreeClassifier(random_state=0), LogisticRegression(tol=1e-8), pipeline):
        template = ClassifierTemplate.of(given, {})
        weighted = template.fitted(features, action, weight, 0)
        repeated = template.fitted(features[twice], action[twice], np.ones(len(twice)), 0)
        found, expected = (one.probabilities(features, 3) for one in (weighted, repeated))
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_the_argument_for_weights_is_found():
    assert weight_argument(GaussianNB()) == "sample_weight"
    assert weight_argument(KNeighborsClassifier()) is None
    assert weight_argument(make_pipeline(StandardScaler(), GaussianNB())) == (
        "gaussiannb__sample_weight"
    )
    assert weight_argument(make_pipeline(KNeighborsClassifier())) is None


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


def test_equal_weights_need_no_draw(seed):
    features, action = some_rows(seed, actions=2)
    template = ClassifierTemplate.of(Plain(), {})
    fitted = template.fitted(features, action, np.full(40, 0.3), 0)
    np.testing.assert_array_equal(fitted.model.target, action)
    # Rows of one action in a block are drawn as often as their weight says, rounded down or up.
    action = np.sort(action)
    weight = np.where(action == 1, 0.4, 0.1)
    drawn = template.fitted(features, action, weight, 0)
    expected = 40 * weight[action == 1].sum() / weight.sum()
    assert abs(drawn.model.target.sum() - expected) < 1


def test_actions_become_numbers_without_gaps(seed):
    """Some libraries refuse anything else."""
    features, action = some_rows(seed, actions=2)
    fitted = ClassifierTemplate.of(Plain(0.25), {}).fitted(features, 3 + 4 * action, np.ones(40), 0)
    assert set(fitted.model.target) == {0, 1}
    np.testing.assert_array_equal(fitted.seen, [3, 7])
    found = fitted.probabilities(features[:1], 9)
    np.testing.assert_array_equal(found, [[0, 0, 0, 0.5, 0, 0, 0, 0.5, 0]])


def test_probabilities_in_single_precision_sum_to_one(seed):
    features, action = some_rows(seed, count=5, actions=2)
    action[:2] = (0, 1)
    fitted = ClassifierTemplate.of(Plain(np.float32(0.1)), {}).fitted(
        features, action, np.ones(5), 0
    )
    np.testing.assert_allclose(fitted.probabilities(features, 2).sum(axis=1), 1, rtol=1e-15)


def test_one_action_needs_no_classifier(seed):
    features, _ = some_rows(seed)
    template = ClassifierTemplate.of(LogisticRegression(), {})
    assert template.fitted(features, np.full(40, 2), np.ones(40), 0) is None
