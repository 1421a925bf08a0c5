"""Policies given by arrays, functions and classifiers, variants, and the argmax of a model."""

import numpy as np
import pandas as pd
import pytest
from refusals import raises_code
from sklearn.linear_model import LogisticRegression

from submax.evaluation import Log, compare, learn
from submax.evaluation.report.evidence.logged_evidence import LoggedEvidence
from submax.evaluation.targets.function_policy import FunctionPolicy
from submax.evaluation.targets.given_probabilities import GivenProbabilities
from submax.evaluation.targets.sharpened import Sharpened, sharpened

ROWS, ARMS = 600, np.array(["A", "B", "C"])


def table_of(rng):
    x, group = rng.normal(size=ROWS), rng.choice(["u", "v"], ROWS)
    action = rng.integers(3, size=ROWS)
    best = (x > 0) * 1 + (group == "u")
    return {
        "action": ARMS[action],
        "reward": (rng.random(ROWS) < 0.2 + 0.6 * (action == best)) * 1,
        "propensity": np.full(ROWS, 1 / 3),
        "context_x": x,
        "context_g": group,
    }, best


@pytest.fixture
def made(seed):
    table, best = table_of(np.random.default_rng(seed))
    return Log.read(table), best


def rule(columns):
    """Return the best action by the names and values that the log has."""
    return ARMS[(columns["x"] > 0) * 1 + (columns["g"] == "u")]


def test_an_array_of_probabilities_has_the_weights_of_its_rows(made):
    log, best = made
    table = np.full((ROWS, 3), 0.1) + 0.7 * np.eye(3)[best]
    found = LoggedEvidence(log).about(GivenProbabilities(table)).evidence
    taken = table[np.arange(ROWS), log.action[:, 0].astype(int)]
    np.testing.assert_allclose(found.probability, taken)
    np.testing.assert_allclose(found.weight, 3 * taken)


def test_rows_that_others_learn_from_are_left_out_of_an_array_too(made):
    log, best = made
    table = np.eye(3)[best]
    both = compare(log, {"given": table, "linear": "linucb"}, estimators=["ips"], by="random")
    rest = ~log.chosen(0.5, "random", 0)
    action = log.action[rest, 0].astype(int)
    expected = np.mean(3 * (action == best[rest]) * log.reward[rest])
    assert both.find("given", "ips").value == pytest.approx(expected)
    alone = compare(log, [table], estimators=["ips"]).find("given probabilities", "ips")
    assert alone.diagnostics.rows == ROWS


def test_a_function_gets_columns_by_name_and_equals_its_array(made):
    log, best = made
    by_array = compare(log, [np.eye(3)[best]], estimators=["snips"]).estimates[1]
    by_rule = compare(log, [rule], estimators=["snips"]).estimates[1]
    assert (by_rule.policy, by_rule.value) == ("rule", pytest.approx(by_array.value))
    probabilities = compare(log, {"f": lambda c: np.eye(3)[best]}, estimators=["snips"])
    assert probabilities.find("f", "snips").value == pytest.approx(by_array.value)


@pytest.mark.parametrize("frame", [False, True])
def test_a_fitted_classifier_is_a_policy_whose_classes_are_actions(frame, made):
    log, best = made
    context = log.parts[0].context
    inputs = pd.DataFrame({"x": context[:, 0].astype(float)}) if frame else context
    classifier = LogisticRegression().fit(inputs, ARMS[best])
    found = LoggedEvidence(log).about(as_target(classifier)).evidence.probability
    expected = classifier.predict_proba(inputs)[np.arange(ROWS), log.action[:, 0].astype(int)]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def as_target(given):
    from submax.evaluation.report.candidates import as_target as convert

    return convert(given)


def test_a_temperature_between_greedy_and_the_policy_itself():
    table = np.array([[0.2, 0.5, 0.3], [0.4, 0.4, 0.2]])
    np.testing.assert_allclose(sharpened(table, 1.0), table)
    np.testing.assert_allclose(sharpened(table, 0.0), [[0, 1, 0], [0.5, 0.5, 0]])
    np.testing.assert_allclose(sharpened(table, 0.5), table**2 / (table**2).sum(1, keepdims=True))
    np.testing.assert_allclose(sharpened(table, 1e-4)[0], [0, 1, 0], atol=1e-12)
    np.testing.assert_allclose(sharpened(np.array([[0.0, 1.0]]), 2.0), [[0.0, 1.0]])


def test_a_variant_by_name_learns_from_the_same_rows_as_the_policy(made):
    log, _ = made
    found = compare(log, ["linucb", "linucb@greedy", "linucb@temperature=1"], estimators=["ips"])
    plain, greedy, same = (found.find(name, "ips") for name in found.policies()[1:])
    assert same.value == pytest.approx(plain.value)
    assert plain.diagnostics.rows == greedy.diagnostics.rows == ROWS // 2
    learned = learn(log, "linucb", share=0.5)
    variant = Sharpened(learned, 0.0, "greedy one")
    again = compare(log, [variant], estimators=["ips"]).find("greedy one", "ips")
    assert again.value == pytest.approx(greedy.value)
    assert again.diagnostics.rows == ROWS // 2


def test_the_argmax_of_the_reward_model_is_a_policy_that_learns(made):
    log, _ = made
    found = compare(log, ["reward-model", "random"], estimators=["snips"])
    better = found.find("reward-model", "snips")
    assert better.diagnostics.rows == ROWS // 2
    # The best action earns 0.8, a random one 0.4; 100 effective rows have a standard error of 0.05.
    assert better.value - found.find("random", "snips").value > 0.1


@pytest.mark.parametrize(
    "given",
    [
        np.ones((ROWS, 3)),
        np.full((ROWS, 3), np.nan),
        np.ones((ROWS, 2)) / 2,
        np.ones((7, 3)) / 3,
        ["D"] * ROWS,
        lambda columns: np.zeros((3, 3)),
        LogisticRegression(),
        LogisticRegression().fit([[0.0], [1.0]], ["A", "Z"]),
        LogisticRegression().fit([[0.0], [1.0]], ["A", "B"]),
        "linucb@gredy",
        "linucb@temperature=-1",
        "linucbb@greedy",
        5,
    ],
)
def test_what_is_no_policy_says_why(given, made):
    log, _ = made
    with raises_code("invalid-input"):
        compare(log, {"one": given}, estimators=["ips"])


def test_a_function_of_slots_gives_probabilities_of_joint_actions(seed):
    rng = np.random.default_rng(seed)
    table = {
        "action_s": rng.choice(["a", "b"], 100),
        "action_t": rng.choice(["c", "d"], 100),
        "reward": rng.integers(2, size=100),
        "propensity": np.full(100, 0.25),
    }
    log = Log.read(table)
    policy = FunctionPolicy(lambda columns: np.tile([0.1, 0.2, 0.3, 0.4], (100, 1)))
    found = LoggedEvidence(log).about(policy).evidence.probability
    joint = 2 * log.action[:, 0] + log.action[:, 1]
    np.testing.assert_allclose(found, (joint + 1) / 10)
    with raises_code("invalid-input"):
        LoggedEvidence(log).about(FunctionPolicy(lambda columns: np.array(["a"] * 100)))
