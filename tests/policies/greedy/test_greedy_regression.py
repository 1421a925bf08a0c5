"""The policy that takes the highest reward that a regressor predicts."""

import numpy as np
import pytest
from refusals import raises_code

from submax import Arms, Feedback, Problem
from submax.core.running.names_file import names_file
from submax.core.running.state_file import read_state, state_bytes
from submax.policies import GreedyRegression
from submax.policies.greedy.action_models import ActionModels

LINEAR = "sklearn.linear_model.LinearRegression"


def feedback(seed: int, rows: int = 400, arms: int = 3) -> Feedback:
    rng = np.random.default_rng(seed)
    context, action = rng.normal(size=(1, rows, 2)), rng.integers(arms, size=(1, rows, 1))
    reward = context[..., 0] * (action[..., 0] - 1) + 0.1 * rng.normal(size=(1, rows))
    return Feedback(context, action, reward, None, np.ones((1, rows)))


def problem(arms: int = 3) -> Problem:
    from submax import Continuous

    return Problem(Arms(arms), context_width=2, scale=Continuous())


def test_it_is_the_argmax_of_a_least_squares_fit_for_each_action(seed):
    given, policy, rng = feedback(seed), GreedyRegression(LINEAR), np.random.default_rng(seed)
    state = policy.update(policy.init(problem(), 1, rng), given, rng)
    new = np.random.default_rng(seed + 1).normal(size=(1, 50, 2))
    found = policy.probabilities(state, new)[0]
    values = []
    for action in range(3):
        row = given.action[0, :, 0] == action
        inputs = np.column_stack([np.ones(row.sum()), given.context[0, row]])
        theta = np.linalg.lstsq(inputs, given.reward[0, row], rcond=None)[0]
        values.append(theta[0] + new[0] @ theta[1:])
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


def test_a_state_read_from_a_file_decides_the_same(seed):
    policy, rng = GreedyRegression("sklearn.tree.ExtraTreeRegressor"), np.random.default_rng(seed)
    given = feedback(seed)
    state = policy.update(policy.init(problem(), 1, rng), given, rng)
    read, _ = read_state(state_bytes(state, {}), ())
    assert np.array_equal(
        policy.probabilities(read, given.context), policy.probabilities(state, given.context)
    )


def test_a_class_of_another_package_needs_trust():
    assert names_file({"kind": "greedy-regression", "regressor": "my_package.Mine"})
    assert names_file({"kind": "greedy-regression", "regressor": [LINEAR, "my_package.Mine"]})
    assert not names_file({"kind": "greedy-regression", "regressor": [LINEAR]})


def test_of_several_models_the_predictions_are_averaged(seed):
    given = feedback(seed)
    two = GreedyRegression((LINEAR, "sklearn.tree.DecisionTreeRegressor"), {})
    unfitted = two.unfitted(binary=False)
    action, reward = given.action[0, :, 0], given.reward[0]
    fit = (given.context[0], action, reward, np.ones(len(action)), 3, seed)
    both = ActionModels.fitted(unfitted, *fit).predict(given.context[0])
    each = [ActionModels.fitted([one], *fit).predict(given.context[0]) for one in unfitted]
    assert both == pytest.approx(np.mean(each, axis=0))


def test_binary_rewards_are_predicted_by_the_classifier_of_the_same_name():
    policy = GreedyRegression("sklearn.tree.DecisionTreeRegressor")
    assert [type(one).__name__ for one in policy.unfitted(binary=True)] == [
        "DecisionTreeClassifier"
    ]
    assert [type(one).__name__ for one in policy.unfitted(binary=False)] == [
        "DecisionTreeRegressor"
    ]
    linear = GreedyRegression(LINEAR).unfitted(binary=True)
    assert type(linear[0]).__name__ == "LinearRegression"


def test_a_wrong_parameter_is_named():
    with raises_code("invalid-input"):
        GreedyRegression(LINEAR, {"depth": 3}).init(problem(), 1, np.random.default_rng(0))
