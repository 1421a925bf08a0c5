from dataclasses import replace

import numpy as np
import pytest
from refusals import raises_code
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from logs import log_of_arrays
from submax.evaluation import compare, reward_models
from submax.evaluation.evaluator import Evaluator
from submax.evaluation.log import Log, expanded
from submax.evaluation.reward_models import (
    FOLDS,
    action_code,
    fitted_models,
    folds_of,
    reward_maps,
)
from submax.models.regression.bayesian import PriorStructure, Sums, fitted
from submax.models.regression.reward_model import POWERS, STEPS

ROWS = 150
MENUS = {
    "arms": ["A", "B", "C"],
    "slots": {"title": ["A", "B", "C"], "layout": ["wide", "narrow"]},
    "price": {"price": (2, 10)},
    "arms and price": {"title": ["A", "B"], "price": (2, 10)},
    "slots and two prices": {"title": ["A", "B"], "layout": ["x", "y"], "p": (0, 1), "q": (-1, 1)},
}


def log_of(actions, seed):
    rng = np.random.default_rng(seed)
    slots = actions if isinstance(actions, dict) else {"": actions}
    table = {}
    for name, given in slots.items():
        column = f"action_{name}" if name else "action"
        if isinstance(given, tuple):
            table[column] = rng.uniform(*given, ROWS)
        else:
            table[column] = np.array(given)[rng.integers(len(given), size=ROWS)]
    table |= {"reward": rng.normal(50.0, 3.0, ROWS), "context_x": rng.normal(3.0, 2.0, ROWS)}
    table["context_c"] = np.array(["u", "v"])[rng.integers(2, size=ROWS)]
    return Log.read(table, actions=actions, context={"x": float, "c": ["u", "v"]})


def dense(log, mapped):
    """The regression of several slots row by row, and the group of each column."""
    menu, (part,) = log.schema.menu, log.parts
    features, groups = (
        mapped.feature_map.rows(part.context.astype(np.float64)),
        mapped.feature_map.groups,
    )
    interacting = mapped.interactions
    sizes = [len(slot.choices) for slot in menu.slots]
    matrix = []
    for action, seen in zip(log.action, features, strict=True):
        row = list(seen)
        for size, chosen in zip(sizes, action, strict=False):
            for number in range(size):
                row += list((seen if interacting else seen[:1]) * (number == chosen))
        scaled = [
            (value - one.low) / (one.high - one.low)
            for value, one in zip(action[len(sizes) :], menu.ranges, strict=True)
        ]
        row += [value**power for power in range(1, POWERS + 1) for value in scaled]
        matrix.append(row)
    group = list(groups)
    for slot, size in enumerate(sizes):
        group += [one + 3 * (slot + 1) for one in (groups if interacting else groups[:1])] * size
    group += [3 * (len(sizes) + 1)] * POWERS * len(menu.ranges)
    return np.array(matrix), np.array(group)


def predictions(log):
    """Every row by a regression on the rows of the other folds, without any structure."""
    fold, found, row = folds_of(log), np.empty(ROWS), np.arange(ROWS)
    for number, mapped in enumerate(reward_maps(log)):
        if mapped.separate:
            matrix, regression = mapped.rows(log.parts[0].context, log.action)
            structure = PriorStructure.sharing(mapped.feature_map.groups, 3)
        else:
            (matrix, group), regression = dense(log, mapped), np.zeros(ROWS, dtype=int)
            structure = PriorStructure.independent(group, 1)
        others, mine = row[fold != number], row[fold == number]
        mean = float(log.reward[others].mean())
        sums = Sums.empty(1 + regression.max(), matrix.shape[1], mean).add(
            matrix[others], regression[others], log.reward[others], np.ones(len(others))
        )
        theta = fitted(sums, structure, mapped.prior, mean, STEPS).coefficients
        found[mine] = mean + np.sum(matrix[mine] * theta[regression[mine]], axis=1)
    return found


def predicted(log, part=None):
    """Every row by the model of its fold."""
    part = log.parts[0] if part is None else part
    every = [
        model.predict(model.features(part.context), part.action) for model in fitted_models(log)
    ]
    return np.choose(folds_of(log), every)


@pytest.mark.parametrize("name", MENUS)
@pytest.mark.parametrize("most", [1500, 1], ids=["interactions", "constants alone"])
def test_choices_add_up_in_one_regression_and_arms_have_their_own(name, most, monkeypatch, seed):
    monkeypatch.setattr(reward_models, "MOST_UNKNOWNS", most)
    log = log_of(MENUS[name], seed)
    assert all(one.interactions == (most > 1 or name == "arms") for one in reward_maps(log))
    np.testing.assert_allclose(predicted(log), predictions(log), rtol=1e-6)


@pytest.mark.parametrize("name", MENUS)
def test_a_log_of_few_rows_has_a_model_too(name):
    for count in (1, 2, 3):
        for model in fitted_models(log_of(MENUS[name], 0).rows(np.arange(count))):
            assert np.isfinite(model.mean)
            assert np.isfinite(model.coefficients).all()


@pytest.mark.parametrize("name", ["arms", "slots and two prices"])
@pytest.mark.parametrize(("unit", "offset"), [(1e-6, 0.0), (1e6, 0.0), (1e-2, 1e4)])
def test_the_unit_of_rewards_changes_nothing(name, unit, offset, seed):
    log = log_of(MENUS[name], seed)
    changed = replace(log, reward=offset + unit * (log.reward - 50))
    plain = predicted(log) - 50
    found = (predicted(changed) - offset) / unit
    np.testing.assert_allclose(found, plain, rtol=1e-5, atol=1e-5)


def logged_predictions(log):
    return Evaluator(log).sample.about(None).predicted


def test_what_is_not_linear_in_the_context_is_learned(seed):
    rng = np.random.default_rng(seed)
    x, action = rng.normal(size=(6000, 2)), rng.integers(2, size=6000)
    expected = np.where(action == 1, np.abs(x[:, 0]), x[:, 0] * x[:, 1])
    reward = expected + rng.normal(size=6000)
    log = log_of_arrays(action, reward, propensity=np.full(6000, 0.5), context=x)
    assert np.var(expected - logged_predictions(log)) < 0.08 * np.var(expected)


def test_noise_is_not_learned(seed):
    rng = np.random.default_rng(seed)
    log = log_of_arrays(
        rng.integers(3, size=600),
        rng.normal(size=600),
        propensity=np.full(600, 1 / 3),
        context=rng.normal(size=(600, 5)),
    )
    # Least squares on all features would predict about as much variance as there is.
    assert np.var(logged_predictions(log)) < 0.1


# Models of other libraries


def arms_of(seed, binary=True):
    rng = np.random.default_rng(seed)
    x, action = rng.normal(size=(600, 2)), rng.integers(3, size=600)
    mean = 1 / (1 + np.exp(-x[:, 0] * (action - 1) * 2))
    reward = (rng.random(600) < mean) * 1.0 if binary else mean + rng.normal(size=600)
    return log_of_arrays(action, reward, propensity=np.full(600, 1 / 3), context=x)


@pytest.mark.parametrize("model", [LinearRegression(), LogisticRegression()], ids=str)
def test_every_row_is_predicted_by_a_model_fitted_without_its_fold(model, seed):
    log = arms_of(seed)
    fold = folds_of(log)
    found = Evaluator(log, reward_model=model).sample.about(None).predicted
    inputs = action_code(log.schema.menu).design(log.context.astype(float), log.action)
    expected = np.empty(600)
    for number in range(FOLDS):
        others, mine = fold != number, fold == number
        fitted = type(model)().fit(inputs[others], log.reward[others])
        if hasattr(fitted, "predict_proba"):
            expected[mine] = fitted.predict_proba(inputs[mine])[:, 1]
        else:
            expected[mine] = fitted.predict(inputs[mine])
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_the_expected_reward_is_the_mean_over_the_actions_of_the_policy(seed):
    log = arms_of(seed)
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(3), 600)
    table[:50] = np.eye(3)[1]
    model = reward_models.reward_models(log, LinearRegression())[1][0]
    features = model.features(log.parts[0].context)
    each = [model.predict(features, np.full((600, 1), one)) for one in range(3)]
    expected = (table * np.stack(each, axis=1)).sum(axis=1)
    np.testing.assert_allclose(model.expected(features, table, table), expected)


def test_a_dotted_name_and_a_table_are_the_object(seed):
    log = arms_of(seed)
    kind = "sklearn.ensemble.HistGradientBoostingRegressor"
    values = [
        compare(log, ["random"], estimators=["dm"], reward_model=one).estimates[1].value
        for one in ({"kind": kind, "max_iter": 5}, HistGradientBoostingRegressor(max_iter=5))
    ]
    assert values[0] == pytest.approx(values[1])


def test_equal_rewards_need_no_model():
    log = log_of_arrays([0, 1] * 20, [1.0] * 40, propensity=[0.5] * 40)
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
        reward_models.reward_models(arms_of(seed, binary=False), given)


@pytest.mark.parametrize(
    "model", [Ridge(), make_pipeline(StandardScaler(), LinearRegression())], ids=str
)
def test_a_row_that_stands_for_several_decisions_weighs_as_many(model, seed):
    rng = np.random.default_rng(seed)
    x, action, count = rng.normal(size=90), rng.integers(2, size=90), rng.integers(1, 5, 90)
    table = {"action": action, "reward": rng.normal(size=90), "context_x": x}
    log = Log.read({**table, "n": count}, columns={"count": "n"})
    log = replace(log, fold=folds_of(log))
    each = expanded(log)
    one, other = (reward_models.supervised_models(log, model, seed)[0] for log in (log, each))
    features = one.features(log.parts[0].context)
    found, wanted = (fit.predict(features, log.action) for fit in (one, other))
    np.testing.assert_allclose(found, wanted)


def test_a_model_that_takes_no_weights_is_fitted_to_rows_drawn_by_them(seed):
    table = {"action": [0, 1] * 300, "reward": [0.0, 0.0, 0.0, 1.0] * 150, "n": [1, 1, 1, 3] * 150}
    log = Log.read(table, columns={"count": "n"})
    model = reward_models.supervised_models(log, KNeighborsRegressor(100), seed)[0]
    found = model.predict(np.zeros((2, 0)), np.array([[0], [1]]))
    assert found == pytest.approx([0.0, 0.75], abs=0.1)
