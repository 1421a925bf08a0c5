import json
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor

from submax.core.policy import probabilities_among
from submax.evaluation import Log, evaluator, learn, make_off_policy, reward_models
from submax.evaluation.evaluator import DRAWS, Evaluator
from submax.evaluation.propensities import (
    PropensityModel,
    SlotPropensities,
    with_estimated_propensities,
)
from submax.evaluation.reward_models import fitted_models, folds_of
from submax.models.regression import reward_model

SIZES = {"title": ["A", "B", "C"], "layout": ["x", "y"]}
ERRORS = 5.0
"""Tolerance in standard errors, which no seed exceeds."""


def arms(seed, rows=150, eligible=False):
    """Propensities depend on the context; in some rows two of the three arms are eligible."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    logged = np.exp(np.outer(x, [0.0, 0.5, -0.5]))
    sets = [["A", "B"], ["B", "C"], ["A", "B", "C"]]
    which = rng.integers(3, size=rows) if eligible else np.full(rows, 2)
    mask = np.array([[name in one for name in "ABC"] for one in sets])[which]
    logged = logged * mask / (logged * mask).sum(axis=1, keepdims=True)
    action = (rng.random((rows, 1)) > logged.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    table = {
        "action": np.array(["A", "B", "C"])[action],
        "reward": (rng.random(rows) < 0.3 + 0.2 * action) * 1.0,
        "propensity": logged[np.arange(rows), action],
        "context_x": x,
    }
    if eligible:
        table["eligible"] = [json.dumps(sets[one]) for one in which]
    return Log.read(table, actions=["A", "B", "C"])


def slots(seed, rows=150, even=True, columns=False, joint=True):
    """Slots chosen independently of each other."""
    rng = np.random.default_rng(seed)
    chances = [[1 / 3] * 3, [1 / 2] * 2] if even else [[0.5, 0.3, 0.2], [0.7, 0.3]]
    action = [rng.choice(len(one), size=rows, p=one) for one in chances]
    single = [np.array(one)[chosen] for one, chosen in zip(chances, action, strict=True)]
    table = {
        "action_title": np.array(SIZES["title"])[action[0]],
        "action_layout": np.array(SIZES["layout"])[action[1]],
        "reward": action[0] + 2.0 * action[1] + rng.normal(size=rows),
        "context_x": rng.normal(size=rows),
    }
    if joint:
        table["propensity"] = single[0] * single[1]
    if columns:
        table |= {"propensity_title": single[0], "propensity_layout": single[1]}
    return Log.read(table, actions=SIZES)


def by_hand(log, learned):
    """Probabilities, weights, predictions and expectations, row by row and action by action."""
    policy = learned.policy
    models = fitted_models(log)
    found = {
        name: [] for name in ("probability", "weight", "predicted", "expected", "square", "slots")
    }
    for number in range(len(log)):
        row = log.rows(np.array([number]))
        context = learned.model.standardization.apply(row.parts[0].context.astype(np.float64))
        eligible = log.eligible_sets[log.eligible_set[number]]
        among = probabilities_among(policy, learned.model.state, context[None], eligible)[0, 0]
        said = dict(zip(product(*eligible), among, strict=True))
        model, taken = models[folds_of(log)[number]], tuple(log.action[number])
        features = model.features(row.parts[0].context)

        def predict(action, model=model, features=features):
            return model.predict(features, np.array([action]))[0]

        found["probability"].append(said[taken])
        found["weight"].append(said[taken] / log.propensity[number])
        found["predicted"].append(predict(taken))
        found["expected"].append(sum(one * predict(action) for action, one in said.items()))
        found["square"].append(sum(one * predict(action) ** 2 for action, one in said.items()))
        found["slots"].append(
            [
                sum(one for action, one in said.items() if action[slot] == taken[slot])
                for slot in range(len(taken))
            ]
        )
    return {name: np.array(values) for name, values in found.items()}


def check(evidence, expected):
    for name in ("probability", "weight", "predicted", "expected"):
        np.testing.assert_allclose(getattr(evidence, name), expected[name], atol=1e-6, err_msg=name)


@pytest.mark.parametrize("policy", ["linucb", "linear-thompson", "rcp-submax", "random"])
@pytest.mark.parametrize("eligible", [False, True], ids=["all", "eligible"])
def test_evidence_equals_that_computed_row_by_row(policy, eligible, seed):
    log = arms(seed, eligible=eligible)
    learned = learn(arms(seed + 1), policy)
    about_policy = Evaluator(log).sample.about(learned)
    check(about_policy, by_hand(log, learned))
    np.testing.assert_array_equal(about_policy.reward, log.reward)
    assert about_policy.slot_weight is None
    assert about_policy.bounds == (0.0, 1.0)
    np.testing.assert_array_equal(about_policy.unsupported, 0.0)


def test_evidence_about_slots(seed):
    log, learned = slots(seed), learn(slots(seed + 1), "linucb")
    evidence, expected = Evaluator(log).sample.about(learned), by_hand(log, learned)
    check(evidence, expected)
    np.testing.assert_allclose(evidence.slot_weight, expected["slots"] * [3, 2], atol=1e-6)


@pytest.mark.parametrize("log", [arms(0), slots(0)], ids=["arms", "slots"])
def test_no_row_is_predicted_by_a_model_that_saw_its_reward(log):
    learned = learn(log, "epsilon-greedy-0.1")
    before = Evaluator(log).sample.about(learned)
    reward = log.reward.copy()
    reward[7] = 1.0 - reward[7]
    after = Evaluator(replace(log, reward=reward)).sample.about(learned)
    assert after.predicted[7] == before.predicted[7]
    assert after.expected[7] == before.expected[7]
    fold = folds_of(log)
    others = fold != fold[7]
    assert (after.expected != before.expected)[others].all()


def test_choices_that_no_row_took_are_found(seed):
    log = arms(seed)
    rest = log.rows(log.action[:, 0] != 1)
    logged = Evaluator(rest)
    assert logged.untaken.tolist() == [False, True, False]
    learned = learn(log, "linear-thompson")
    expected = learned.probabilities(rest.parts[0].context)[:, 1]
    np.testing.assert_allclose(logged.sample.about(learned).unsupported, expected, atol=1e-9)


def test_evidence_in_pieces_is_evidence_at_once(monkeypatch, seed):
    log, learned = arms(seed, eligible=True), learn(arms(seed + 1), "linucb")
    whole = Evaluator(log).sample.about(learned)
    monkeypatch.setattr(evaluator, "PART_ROWS", 40)
    monkeypatch.setattr(evaluator, "NUMBERS_PER_PART", 30)
    monkeypatch.setattr(reward_models, "NUMBERS_PER_CHUNK", 50)
    monkeypatch.setattr(reward_model, "ROWS_PER_PREDICTION", 6)
    pieces = Evaluator(log).sample.about(learned)
    for one, other in zip(whole[:5], pieces[:5], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("policy", ["linucb", "epsilon-greedy-0.2"])
@pytest.mark.slow
def test_where_actions_are_too_many_to_list_drawing_agrees_with_listing(policy, monkeypatch, seed):
    log, learned = slots(seed, rows=200), learn(slots(seed + 1), policy)
    rest = log.rows(log.action[:, 0] != 1)
    listed = Evaluator(log, seed).sample.about(learned)
    expected = by_hand(log, learned)
    untaken = Evaluator(rest, seed).sample.about(learned).unsupported
    monkeypatch.setattr(evaluator, "MOST_LISTED", 1)
    drawn = Evaluator(log, seed).sample.about(learned)
    for name in ("probability", "weight", "predicted"):
        np.testing.assert_allclose(getattr(drawn, name), getattr(listed, name), atol=1e-6)
    variance = np.maximum(expected["square"] - expected["expected"] ** 2, 0.0)
    error = np.sqrt(variance.sum() / DRAWS) / len(log)
    assert abs(drawn.expected.mean() - listed.expected.mean()) <= ERRORS * error + 1e-6
    share = expected["slots"]
    error = np.sqrt((share * (1 - share) * [9, 4] / DRAWS).sum(axis=0)) / len(log)
    difference = (drawn.slot_weight - listed.slot_weight).mean(axis=0)
    assert (np.abs(difference) <= ERRORS * error + 1e-6).all()
    error = np.sqrt((untaken * (1 - untaken) / DRAWS).sum()) / len(rest)
    found = Evaluator(rest, seed).sample.about(learned).unsupported
    assert abs(found.mean() - untaken.mean()) <= ERRORS * error + 1e-6
    if policy == "linucb":
        # All draws of a deterministic policy are equal, and give the exact evidence in each row.
        np.testing.assert_allclose(drawn.expected, listed.expected, atol=1e-6)
        np.testing.assert_allclose(drawn.slot_weight, listed.slot_weight, atol=1e-6)


@pytest.mark.slow
def test_the_value_of_real_valued_actions_is_unbiased(seed):
    rng, rows, logs = np.random.default_rng([seed, 1]), 200, 60

    def chance(price):
        return 0.9 - 0.08 * price

    def log():
        price = rng.uniform(0, 10, rows)
        table = {"action_price": price, "reward": (rng.random(rows) < chance(price)) * 1.0}
        table["propensity"] = np.full(rows, 0.1)
        return Log.read(table, actions={"price": (0, 10)}, rewards="binary")

    learned = learn(log(), "grid-thompson-1-1")
    grid = (np.arange(10_000) + 0.5) / 1000
    density = np.exp(
        learned.policy.log_prob(learned.model.state, np.zeros((1, 10_000, 0)), grid[None, :, None])
    )[0]
    truth = (density * chance(grid)).sum() / 1000
    assert density.sum() / 1000 == pytest.approx(1.0, abs=1e-3)
    evidence = [
        Evaluator(log(), number, DummyRegressor()).sample.about(learned) for number in range(logs)
    ]
    for estimator in ("ips", "dr"):
        values = [make_off_policy(estimator).terms(one).value for one in evidence]
        error = np.std(values, ddof=1) / np.sqrt(logs)
        assert abs(np.mean(values) - truth) <= ERRORS * error, estimator


def test_propensities_of_slots_are_those_logged_or_known_or_estimated(seed):
    uniform = slots(seed)
    known = SlotPropensities(uniform, seed)
    np.testing.assert_allclose(known.of(uniform), np.tile([1 / 3, 1 / 2], (150, 1)))
    log = slots(seed, even=False, columns=True)
    logged = SlotPropensities(log, seed)
    np.testing.assert_allclose(logged.of(log).prod(axis=1), log.propensity)
    assert not known.estimated
    assert not logged.estimated
    for joint in (True, False):
        log = with_estimated_propensities(slots(seed, even=False, joint=joint), seed)
        estimated = SlotPropensities(log, seed)
        assert estimated.estimated
        wanted = np.maximum(*PropensityModel(log, seed).estimates(log))
        np.testing.assert_allclose(estimated.of(log), wanted)
