import math

import numpy as np
import pytest

from submax import Continuous, Feedback, Mixed, Problem
from submax.policies import FourierThompson
from submax.research.beyond.real_valued import FourierStatistics
from submax.testing.problems import some_contexts, some_feedback

CLEAR = 6.5
"""Standard errors: one false alarm in ten thousand million comparisons."""
SPACE = Mixed((3,), (-1.0,), (1.0,))
PROBLEM = Problem(SPACE, context_width=2, scale=Continuous())
SMALL = FourierThompson(points=4, features=12, draws=9)


def taught(policy, problem, replicas, rows, seed):
    rng = np.random.default_rng(seed)
    feedback = some_feedback(problem, replicas, rows, seed)
    return policy.update(policy.init(problem, replicas, rng), feedback, rng)


def test_draws_have_mean_and_covariance_of_the_regression(seed):
    rng, scale, ridge, count = np.random.default_rng(seed), 0.7, 0.4, 20000
    features = rng.normal(size=(2, 15, 3))
    reward = 5.0 + 3.0 * rng.normal(size=(2, 15))
    weight = rng.choice([0.0, 1.0, 2.0], size=(2, 15))
    parts = FourierStatistics.empty(2, 3)
    for rows in (slice(0, 4), slice(4, 15)):
        parts = parts.add(features[:, rows], reward[:, rows], weight[:, rows])
    drawn = parts.draws(count, scale, ridge, rng)
    assert drawn.shape == (2, count, 3)
    for replica in range(2):
        # A row of weight 2 is there twice.
        rows = np.repeat(np.arange(15), weight[replica].astype(int))
        design, paid = features[replica][rows], reward[replica][rows]
        precision = ridge * np.eye(3) + design.T @ design
        centre = np.linalg.solve(precision, design.T @ ((paid - paid.mean()) / paid.std()))
        covariance = scale**2 * np.linalg.inv(precision)
        variance = np.diag(covariance)
        away = drawn[replica].mean(axis=0) - centre
        assert np.all(np.abs(away) < CLEAR * np.sqrt(variance / count))
        error = np.sqrt((np.outer(variance, variance) + covariance**2) / (count - 1))
        assert np.all(np.abs(np.cov(drawn[replica].T) - covariance) < CLEAR * error)


def test_draws_are_from_the_prior_until_rewards_differ(seed):
    rng, count = np.random.default_rng(seed), 20000
    drawn = FourierStatistics.empty(1, 2).draws(count, 1.5, 0.5, rng)[0]
    covariance = 1.5**2 / 0.5 * np.eye(2)
    assert np.all(np.abs(drawn.mean(axis=0)) < CLEAR * np.sqrt(np.diag(covariance) / count))
    error = np.sqrt((4.5**2 + covariance**2) / (count - 1))
    assert np.all(np.abs(np.cov(drawn.T) - covariance) < CLEAR * error)
    ones = np.ones((1, 30))
    equal = FourierStatistics.empty(1, 3).add(rng.normal(size=(1, 30, 3)), 0.75 * ones, ones)
    np.testing.assert_allclose(equal.draws(5, 1e-12, 1.0, rng), 0.0, atol=1e-9)


def feature(policy, state, context, action, seed):
    """The features of one action in one context: their sum after it alone was observed."""
    one = (1, 1)
    feedback = Feedback(
        context.reshape(1, 1, -1), action.reshape(1, 1, -1), np.ones(one), None, np.ones(one)
    )
    return policy.update(state, feedback, np.random.default_rng(seed)).statistics.features[0]


def test_the_features_approximate_the_kernel(seed):
    many = 512
    policy = FourierThompson(length=0.25, context_length=2.0, features=many, draws=1)
    state = policy.init(PROBLEM, 1, np.random.default_rng(seed))
    # The first point, then another choice, another number, another context, and all of them.
    action = np.array([[0, -0.5], [2, -0.5], [0, 0.5], [0, -0.5], [2, 0.0]])
    context = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [-1.0, 0.5], [0.0, 0.0]])
    found = np.array(
        [feature(policy, state, *pair, seed) for pair in zip(context, action, strict=True)]
    )
    for first, second in np.ndindex(5, 5):
        moved = (action[first, 1] - action[second, 1]) / 2.0 / 0.25
        turned = (context[first] - context[second]) / 2.0
        other = 2.0 * (action[first, 0] != action[second, 0])
        kernel = math.exp(-(moved**2 + turned @ turned + other) / 2)
        # Each of the features adds a number of mean k and variance 1 at most, over F.
        assert abs(found[first] @ found[second] - kernel) < 5 / math.sqrt(many)


def highest_cells(policy, state, replica, context):
    """The highest cell of every function in one context, one value at a time."""
    cells = [(choice, (place + 0.5) / policy.points) for choice in range(3) for place in range(4)]
    waves = state.action_waves[replica], state.context_waves[replica], state.phase[replica]
    found = []
    for coefficients in state.draws[replica]:
        heights = []
        for choice, place in cells:
            inputs = np.array([choice == 0, choice == 1, choice == 2, place])
            angle = waves[0] @ inputs + waves[1] @ context + waves[2]
            heights.append(coefficients @ (np.sqrt(2 / policy.features) * np.cos(angle)))
        found.append(int(np.argmax(heights)))
    return np.array(found)


@pytest.mark.parametrize("rows", [0, 40])
def test_the_density_is_the_share_of_the_functions_that_are_highest(rows, seed):
    state = taught(SMALL, PROBLEM, 2, rows, seed)
    context = some_contexts(PROBLEM, 2, 30, seed)
    action = SPACE.uniform((2, 30), np.random.default_rng((seed, 7)))
    found = np.exp(SMALL.log_prob(state, context, action))
    for replica, row in np.ndindex(2, 30):
        choice, number = action[replica, row]
        cell = int(choice) * 4 + min(int((number + 1) / 0.5), 3)
        share = np.mean(highest_cells(SMALL, state, replica, context[replica, row]) == cell)
        assert found[replica, row] == pytest.approx(share / 0.5)
