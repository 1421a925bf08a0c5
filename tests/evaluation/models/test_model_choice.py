import numpy as np
import pytest
from refusals import raises_code
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

from submax.evaluation import Log, compare
from submax.evaluation.evaluator import Evaluator
from submax.evaluation.reward_models import FOLDS, design, fold_numbers, reward_models

ROWS = 600


def log_of(seed, binary=True):
    rng = np.random.default_rng(seed)
    x, action = rng.normal(size=(ROWS, 2)), rng.integers(3, size=ROWS)
    mean = 1 / (1 + np.exp(-x[:, 0] * (action - 1) * 2))
    reward = (rng.random(ROWS) < mean) * 1.0 if binary else mean + rng.normal(size=ROWS)
    return Log.from_arrays(action, reward, propensity=np.full(ROWS, 1 / 3), context=x)


@pytest.mark.parametrize("model", [LinearRegression(), LogisticRegression()], ids=str)
def test_every_row_is_predicted_by_a_model_fitted_without_its_fold(model, seed):
    log, fold = log_of(seed), fold_numbers(ROWS)
    found = Evaluator(log, reward_model=model).sample.about(None).predicted
    inputs = design(log.context.astype(float), log.action, np.zeros((ROWS, 0)), (3,))
    expected = np.empty(ROWS)
    for number in range(FOLDS):
        others, mine = fold != number, fold == number
        fitted = type(model)().fit(inputs[others], log.reward[others])
        if hasattr(fitted, "predict_proba"):
            expected[mine] = fitted.predict_proba(inputs[mine])[:, 1]
        else:
            expected[mine] = fitted.predict(inputs[mine])
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_the_expected_reward_is_the_mean_over_the_actions_of_the_policy(seed):
    log = log_of(seed)
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(3), ROWS)
    table[:50] = np.eye(3)[1]
    model = reward_models(log, LinearRegression())[1][0]
    features, none = model.features(log.parts[0].context), np.zeros((ROWS, 0))
    each = [model.predict(features, np.full((ROWS, 1), one), none) for one in range(3)]
    expected = (table * np.stack(each, axis=1)).sum(axis=1)
    np.testing.assert_allclose(model.expected(features, table, [table]), expected)


def test_a_dotted_name_and_a_table_are_the_object(seed):
    log = log_of(seed)
    kind = "sklearn.ensemble.HistGradientBoostingRegressor"
    values = [
        compare(log, ["random"], estimators=["dm"], reward_model=one).estimates[1].value
        for one in ({"kind": kind, "max_iter": 5}, HistGradientBoostingRegressor(max_iter=5))
    ]
    assert values[0] == pytest.approx(values[1])


def test_equal_rewards_need_no_model():
    log = Log.from_arrays([0, 1] * 20, [1.0] * 40, propensity=[0.5] * 40)
    found = compare(log, ["random"], estimators=["dm", "dr"], reward_model=LogisticRegression())
    assert [one.value for one in found.estimates[1:]] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("given", "parameter"),
    [
        ("nothing.Here", None),
        ("sklearn.linear_model.Rigde", None),
        (LinearRegression, "reward_model"),
        (7, "reward_model"),
        ({"kind": "sklearn.linear_model.Ridge", "alfa": 1}, None),
        (LogisticRegression(), "reward_model"),
        (HistGradientBoostingRegressor(max_iter=-1), "reward_model"),
    ],
)
def test_what_is_no_reward_model_is_refused(given, parameter, seed):
    with raises_code("invalid-input", parameter):
        reward_models(log_of(seed, binary=False), given)
