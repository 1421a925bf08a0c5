"""Logistic regressions, compared with scikit-learn, and their decisions."""

import numpy as np
import pytest
from scipy import special

from submax import Arms, Feedback, LogisticContextual, Problem, make_policy, simulate
from submax.policies import LogisticThompson, LogisticUCB

ACTIONS, WIDTH, ROWS = 3, 2, 60
PROBLEM = Problem(Arms(ACTIONS), WIDTH)


def feedback_of(seed):
    rng = np.random.default_rng(seed)
    context = rng.normal(size=(2, ROWS, WIDTH))
    action = rng.integers(ACTIONS, size=(2, ROWS, 1))
    chance = special.expit(2 * context[..., 0] * (action[..., 0] - 1))
    reward = (rng.random((2, ROWS)) < chance).astype(float)
    return Feedback(context, action, reward, None, np.ones((2, ROWS)))


@pytest.mark.parametrize("precision", [0.1, 1.0, 10.0])
def test_the_mode_is_that_of_penalized_regression_in_scikit_learn(precision, seed):
    linear_model = pytest.importorskip("sklearn.linear_model")
    policy, feedback = LogisticUCB(precision=precision), feedback_of(seed)
    state = policy.update(policy.init(PROBLEM, 2, np.random.default_rng(0)), feedback, None)
    for replica in range(2):
        for action in range(ACTIONS):
            mine = feedback.action[replica, :, 0] == action
            rows = np.column_stack([np.ones(mine.sum()), feedback.context[replica, mine]])
            rewards = feedback.reward[replica, mine]
            if len(set(rewards)) < 2:
                continue
            fitted = linear_model.LogisticRegression(
                C=1 / precision, fit_intercept=False, tol=1e-10, max_iter=10000
            ).fit(rows, rewards)
            np.testing.assert_allclose(state.mean[replica, action], fitted.coef_[0], atol=1e-5)
            chance = special.expit(rows @ state.mean[replica, action])
            curvature = (rows * (chance * (1 - chance))[:, None]).T @ rows
            np.testing.assert_allclose(
                state.precision[replica, action], curvature + precision * np.eye(3), atol=1e-9
            )


def test_the_bound_is_the_mean_plus_a_multiple_of_the_deviation(seed):
    policy, feedback = LogisticUCB(alpha=2.0), feedback_of(seed)
    state = policy.update(policy.init(PROBLEM, 2, np.random.default_rng(0)), feedback, None)
    context = feedback.context[:, :5]
    listed = policy.probabilities(state, context)
    for replica, row in np.ndindex(2, 5):
        x = np.array([1.0, *context[replica, row]])
        bounds = [
            x @ state.mean[replica, action]
            + 2.0 * np.sqrt(x @ np.linalg.solve(state.precision[replica, action], x))
            for action in range(ACTIONS)
        ]
        assert listed[replica, row].argmax() == int(np.argmax(bounds))


def test_draws_are_those_of_the_coefficients(seed):
    """Frequencies of drawn coefficients, within five standard errors of the probabilities."""
    policy, feedback = LogisticThompson(), feedback_of(seed)
    state = policy.update(policy.init(PROBLEM, 2, np.random.default_rng(0)), feedback, None)
    rng, draws = np.random.default_rng(seed), 20000
    x = np.array([1.0, 0.3, -0.7])
    products = [
        rng.multivariate_normal(state.mean[0, a], np.linalg.inv(state.precision[0, a]), draws) @ x
        for a in range(ACTIONS)
    ]
    share = np.bincount(np.argmax(products, axis=0), minlength=ACTIONS) / draws
    found = policy.probabilities(state, np.tile(x[1:], (2, 1, 1)))[0, 0]
    assert np.all(np.abs(share - found) < 5 * np.sqrt(found * (1 - found) / draws) + 1e-9)


@pytest.mark.parametrize("name", ["logistic-ucb", "logistic-thompson"])
def test_they_beat_a_uniform_choice_where_the_model_is_right(name, seed):
    environment = LogisticContextual(3, 2, spread=2.0)
    settings = {"observations": 150, "replicas": 10, "seed": seed}
    ours = simulate(environment, make_policy(name), **settings).final_regret
    uniform = simulate(environment, make_policy("random"), **settings).final_regret
    difference = uniform - ours
    assert difference.mean() > 3 * difference.std(ddof=1) / np.sqrt(10)
