from dataclasses import replace

import numpy as np
import pytest

from submax.evaluation import reward_models
from submax.evaluation.evaluator import Evaluator
from submax.evaluation.log import Log
from submax.evaluation.reward_models import (
    FOLDS,
    POWERS,
    STEPS,
    fitted_models,
    fold_numbers,
    polynomial_features,
    reward_maps,
)
from submax.models.regression.bayesian import PriorStructure, Sums, fitted

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
    features, groups = mapped.features(part.context), mapped.feature_map.groups
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


def maps_of(log):
    return reward_maps(log, fold_numbers(len(log)), FOLDS)


def predictions(log):
    """Every row by a regression on the rows of the other folds, without any structure."""
    fold, found = fold_numbers(ROWS), np.empty(ROWS)
    for number, mapped in enumerate(maps_of(log)):
        matrix, group = dense(log, mapped)
        others, mine = fold != number, fold == number
        mean = float(log.reward[others].mean())
        sums = Sums.empty(1, matrix.shape[1], mean).add(
            matrix[others],
            np.zeros(others.sum(), dtype=int),
            log.reward[others],
            np.ones(others.sum()),
        )
        design = PriorStructure.independent(group, 1)
        posterior = fitted(sums, design, mapped.prior, mean, STEPS)
        found[mine] = mean + matrix[mine] @ posterior.coefficients[0]
    return found


def predictions_of_arms(log):
    """Every row by regressions of the arms on the rows of the other folds."""
    (part,) = log.parts
    fold, found = fold_numbers(ROWS), np.empty(ROWS)
    for number, mapped in enumerate(maps_of(log)):
        features, arm = mapped.features(part.context), log.action[:, 0].astype(int)
        others, mine = fold != number, fold == number
        mean = float(log.reward[others].mean())
        sums = Sums.empty(3, features.shape[1], mean).add(
            features[others], arm[others], log.reward[others], np.ones(others.sum())
        )
        design = PriorStructure.sharing(mapped.feature_map.groups, 3)
        theta = fitted(sums, design, mapped.prior, mean, STEPS).coefficients
        found[mine] = mean + np.sum(features[mine] * theta[arm[mine]], axis=1)
    return found


def predicted(log, part=None):
    """Every row by the model of its fold."""
    part = log.parts[0] if part is None else part
    powers = polynomial_features(log, part.action)
    every = [
        model.predict(model.features(part.context), part.action, powers)
        for model in fitted_models(log)
    ]
    return np.choose(fold_numbers(ROWS), every)


@pytest.mark.parametrize("name", [name for name in MENUS if name != "arms"])
@pytest.mark.parametrize("most", [1500, 1], ids=["interactions", "constants alone"])
def test_choices_add_up_in_one_regression_on_the_other_folds(name, most, monkeypatch, seed):
    monkeypatch.setattr(reward_models, "MOST_UNKNOWNS", most)
    log = log_of(MENUS[name], seed)
    assert all(one.interactions == (most > 1) for one in maps_of(log))
    np.testing.assert_allclose(predicted(log), predictions(log), rtol=1e-6)


def test_arms_are_regressions_of_their_own_on_the_other_folds(seed):
    log = log_of(MENUS["arms"], seed)
    np.testing.assert_allclose(predicted(log), predictions_of_arms(log), rtol=1e-6)


@pytest.mark.parametrize("name", MENUS)
def test_a_log_of_few_rows_has_a_model_too(name):
    for count in (1, 2, 3):
        for model in fitted_models(log_of(MENUS[name], 0).rows(np.arange(count))):
            assert np.isfinite(model.mean)
            assert all(np.isfinite(slot).all() for slot in model.slots)


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
    log = Log.from_arrays(action, reward, propensity=np.full(6000, 0.5), context=x)
    assert np.var(expected - logged_predictions(log)) < 0.08 * np.var(expected)


def test_noise_is_not_learned(seed):
    rng = np.random.default_rng(seed)
    log = Log.from_arrays(
        rng.integers(3, size=600),
        rng.normal(size=600),
        propensity=np.full(600, 1 / 3),
        context=rng.normal(size=(600, 5)),
    )
    # Least squares on all features would predict about as much variance as there is.
    assert np.var(logged_predictions(log)) < 0.1


@pytest.mark.parametrize(
    ("rows", "width", "choices", "features"),
    [(2000, 4, 3, 133), (600, 4, 3, 65), (60, 4, 3, 5), (300, 30, 2000, 31), (300, 30, 5000, 28)],
    ids=["kernels", "some rows", "few rows", "many arms", "too many arms"],
)
def test_features_fit_the_rows_and_the_memory(rows, width, choices, features, monkeypatch):
    # How many features there are depends neither on the kernel length nor on the prior.
    monkeypatch.setattr(reward_models, "LENGTHS", reward_models.LENGTHS[-1:])
    monkeypatch.setattr(reward_models, "STEPS", 1)
    log = Log.from_arrays(
        np.arange(rows) % choices,
        np.arange(rows) % 7,
        context=np.random.default_rng(0).normal(size=(rows, width)),
        actions=[str(one) for one in range(choices)],
    )
    for found in reward_maps(log, np.arange(rows) % 2, 2):
        assert found.feature_map.width == features
