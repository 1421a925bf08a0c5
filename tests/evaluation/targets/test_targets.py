"""Policies given by arrays, functions, classifiers, names of actions and columns; variants."""

import numpy as np
import pandas as pd
import pytest
from refusals import raises_code
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import LogisticRegression

from submax.core.numerics import sharpened
from submax.evaluation import Log, compare, learn
from submax.evaluation.log import divided
from submax.evaluation.policies import variant_of

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


def value_of(log, policy, estimator="ips"):
    """The value of one policy; the model of rewards does not matter here."""
    found = compare(log, {"p": policy}, estimators=[estimator], reward_model=DummyRegressor())
    return found.find("p", estimator).value


def weighted_mean(log, table):
    """The value of ``table [N, 3]`` by inverse propensities of 1/3."""
    taken = table[np.arange(len(log)), log.action[:, 0].astype(int)]
    return pytest.approx(np.mean(3 * taken * log.reward))


@pytest.mark.parametrize("kind", ["array", "function", "names", "classifier", "of a frame"])
def test_a_policy_of_any_kind_has_the_weights_of_its_rows(kind, made):
    log, best = made
    table, context = np.full((ROWS, 3), 0.1) + 0.7 * np.eye(3)[best], log.parts[0].context
    policy = {"array": table, "function": lambda columns: table, "names": rule}.get(kind)
    if kind == "names":
        table = np.eye(3)[best]
    elif policy is None:
        # A fitted classifier, whose classes are actions.
        frame = pd.DataFrame({"x": context[:, 0].astype(float)})
        inputs = context if kind == "classifier" else frame
        policy = LogisticRegression().fit(inputs, ARMS[best])
        table = policy.predict_proba(inputs)
    assert value_of(log, policy) == weighted_mean(log, table)


def test_rows_that_others_learn_from_are_left_out_of_an_array_too(made):
    log, best = made
    table = np.eye(3)[best]
    both = compare(log, {"given": table, "linear": "linucb"}, estimators=["ips"], by="random")
    rest = divided(log, [0.5, 0.5], "random", 0).part == 1
    action = log.action[rest, 0].astype(int)
    expected = np.mean(3 * (action == best[rest]) * log.reward[rest])
    assert both.find("given", "ips").value == pytest.approx(expected)
    alone = compare(log, [table], estimators=["ips"]).find("given probabilities", "ips")
    assert alone.diagnostics.rows == ROWS


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
    variant = variant_of(learned, 0.0)
    again = compare(log, {"greedy one": variant}, estimators=["ips"]).find("greedy one", "ips")
    assert again.value == pytest.approx(greedy.value)
    assert again.diagnostics.rows == ROWS // 2


@pytest.mark.parametrize(
    ("given", "parameter"),
    [
        (np.ones((ROWS, 3)), "policies"),
        (np.ones((7, 3)) / 3, "policies"),
        (["D"] * ROWS, "policies"),
        (lambda columns: np.zeros((3, 3)), "policies"),
        (LogisticRegression(), "policies"),
        (LogisticRegression().fit([[0.0], [1.0]], ["A", "Z"]), "policies"),
        (LogisticRegression().fit([[0.0], [1.0]], ["A", "B"]), "policies"),
        ("linucb@gredy", "policy"),
        ("linucb@temperature=-1", None),
        ("linucbb@greedy", "policy"),
        ("always=D", "policies"),
        ("columns=new", "policies"),
        ("columns=old_*", "policies"),
        (5, "policies"),
    ],
)
def test_what_is_no_policy_is_refused(given, parameter, made):
    log, _ = made
    with raises_code("invalid-input", parameter):
        value_of(log, given)


def test_a_function_of_slots_gives_probabilities_of_joint_actions(seed):
    rng = np.random.default_rng(seed)
    table = {
        "action_s": rng.choice(["a", "b"], 100),
        "action_t": rng.choice(["c", "d"], 100),
        "reward": rng.integers(2, size=100),
        "propensity": np.full(100, 0.25),
    }
    log = Log.read(table)
    joint = 2 * log.action[:, 0] + log.action[:, 1]
    found = value_of(log, lambda columns: np.tile([0.1, 0.2, 0.3, 0.4], (100, 1)))
    assert found == pytest.approx(np.mean(4 * (joint + 1) / 10 * log.reward))
    for one_action in (lambda columns: np.array(["a"] * 100), "always=*"):
        with raises_code("invalid-input", "policies"):
            value_of(log, one_action)


# Policies that always take one action, and columns of probabilities


def test_a_policy_that_always_takes_an_action_earns_its_mean(made):
    log, _ = made
    found = compare(log, ["always=*"], estimators=["snips"])
    assert found.policies() == ["logging policy", "always=A", "always=B", "always=C"]
    for number, name in enumerate("ABC"):
        one = found.find(f"always={name}", "snips")
        assert one.value == pytest.approx(log.reward[log.action[:, 0] == number].mean())
        # Nothing is learned, so that all rows are evaluated.
        assert one.diagnostics.rows == ROWS


def test_all_actions_have_the_name_that_the_caller_gave(made):
    log, _ = made
    policies = {"mine": "always=*", "random": np.full((ROWS, 3), 1 / 3)}
    found = compare(log, policies, estimators=["ips"], baseline="random")
    assert [one.policy for one in found.differences] == ["mine=A", "mine=B", "mine=C"]
    assert compare(log, [rule], estimators=["ips"]).policies()[1:] == ["rule"]
    both = compare(log, ["always=B", "always=*"], estimators=["ips"])
    assert both.policies() == ["logging policy", "always=B", "always=A", "always=C"]
    with raises_code("invalid-input", "policies"):
        compare(log, {"always=A": policies["random"], "always=*": "always=*"})


def test_columns_of_probabilities_are_an_array_in_the_order_of_time(seed):
    """The rows are not in the order of time, and the columns not in that of the actions."""
    rng = np.random.default_rng(seed)
    table, _ = table_of(rng)
    probability, table["at"] = rng.dirichlet(np.ones(3), size=ROWS), rng.permutation(ROWS)
    table |= {f"new_{name}": probability[:, place] for place, name in enumerate("CAB")}
    log = Log.read(table, columns={"probability": "new_*"})
    array = probability[np.argsort(table["at"])][:, [1, 2, 0]]
    assert value_of(log, "columns=new_*") == weighted_mean(log, array)
    half = log.rows(np.arange(100))
    assert np.array_equal(half.probability, log.probability[:100])
    with raises_code("invalid-input", "policies"):
        value_of(log, "columns=ne*")
    table["new_A"] += 0.5
    wrong = Log.read(table, columns={"probability": ["new_*"]})
    with raises_code("invalid-input", "policies"):
        value_of(wrong, "columns=new_*")
