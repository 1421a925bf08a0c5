"""The policy that takes the highest prediction, and variants with another temperature."""

import numpy as np
import pytest

import submax
from submax import Arms, Continuous, Feedback, Problem
from submax.core.registry import references_user_code
from submax.policies import GreedyRegression, Tempered

LINEAR = "sklearn.linear_model.LinearRegression"


def feedback(seed: int, rows: int = 400, arms: int = 3) -> Feedback:
    rng = np.random.default_rng(seed)
    context, action = rng.normal(size=(1, rows, 2)), rng.integers(arms, size=(1, rows, 1))
    arm = action[..., 0]
    reward = context[..., 0] * (arm - 1) + 0.5 * (arm == 1) + 0.1 * rng.normal(size=(1, rows))
    return Feedback(context, action, reward, None, np.ones((1, rows)))


def problem(arms: int = 3) -> Problem:
    return Problem(Arms(arms), context_width=2, scale=Continuous())


@pytest.mark.parametrize("others", [(), ("sklearn.dummy.DummyRegressor",)])
def test_it_is_the_argmax_of_a_least_squares_fit_for_each_action(others, seed):
    """Of several regressors the predictions are averaged; the other one predicts the mean."""
    given, rng = feedback(seed), np.random.default_rng(seed)
    policy = GreedyRegression((LINEAR, *others))
    state = policy.update(policy.init(problem(), 1, rng), given, rng)
    new = np.random.default_rng(seed + 1).normal(size=(1, 50, 2))
    found = policy.probabilities(state, new)[0]
    values = []
    for action in range(3):
        row = given.action[0, :, 0] == action
        inputs = np.column_stack([np.ones(row.sum()), given.context[0, row]])
        theta = np.linalg.lstsq(inputs, given.reward[0, row], rcond=None)[0]
        fitted = [theta[0] + new[0] @ theta[1:], *(given.reward[0, row].mean() for _ in others)]
        values.append(sum(fitted) / len(fitted))
    assert (found.argmax(axis=1) == np.argmax(values, axis=0)).all()
    assert found.max(axis=1) == pytest.approx(1.0)


def test_an_action_with_few_rows_is_predicted_by_its_mean(seed):
    given = feedback(seed)
    reward = np.where(given.action[..., 0] == 2, 100.0, given.reward)
    weight = np.ones_like(reward)
    weight[0, np.flatnonzero(given.action[0, :, 0] == 2)[5:]] = 0
    policy, rng = GreedyRegression(LINEAR), np.random.default_rng(seed)
    given = given._replace(reward=reward, weight=weight)
    state = policy.update(policy.init(problem(), 1, rng), given, rng)
    assert (policy.probabilities(state, given.context)[..., 2] == 1).all()


def test_a_class_of_another_package_needs_trust():
    assert references_user_code({"kind": "greedy-regression", "regressor": "my_package.Mine"})
    assert references_user_code(
        {"kind": "greedy-regression", "regressor": [LINEAR, "my_package.Mine"]}
    )
    assert not references_user_code({"kind": "greedy-regression", "regressor": [LINEAR]})


def test_binary_rewards_are_predicted_by_the_classifier_of_the_same_name():
    policy = GreedyRegression(("sklearn.tree.DecisionTreeRegressor", LINEAR))
    for binary, tree in ((True, "DecisionTreeClassifier"), (False, "DecisionTreeRegressor")):
        names = [type(one).__name__ for one in policy.unfitted(binary=binary)]
        assert names == [tree, "LinearRegression"]


def arm_feedback(seed: int) -> Feedback:
    rng = np.random.default_rng(seed)
    action = rng.integers(3, size=(1, 200, 1))
    reward = (rng.random((1, 200)) < 0.2 + 0.2 * action[..., 0]) * 1.0
    return Feedback(np.zeros((1, 200, 0)), action, reward, None, np.ones((1, 200)))


@pytest.mark.parametrize("temperature", [0.0, 0.25, 1.0, 4.0])
def test_probabilities_are_powers_of_those_of_the_policy(temperature, seed):
    policy = submax.make_policy("thompson-1-1")
    tempered = Tempered(policy, temperature)
    rng = np.random.default_rng(seed)
    state = tempered.update(tempered.init(Problem(Arms(3)), 1, rng), arm_feedback(seed), rng)
    base = policy.probabilities(state, np.zeros((1, 1, 0)))
    found = tempered.probabilities(state, np.zeros((1, 1, 0)))
    if temperature:
        expected = base ** (1 / temperature)
        assert found == pytest.approx(expected / expected.sum())
    else:
        assert found[0, 0].tolist() == (base[0, 0] == base.max()).astype(float).tolist()
