import math

import numpy as np
import pytest
from observations import observed, taught

from submax import Box, Continuous, Problem
from submax.estimators import Counting
from submax.policies import EpsilonGreedy, FourierThompson, Gridded, RewardConditioned
from submax.research.beyond.real_valued import FourierStatistics
from submax.strategies import Optimized
from submax.testing.problems import some_contexts, some_feedback

CLEAR = 6.5
"""Standard errors: one false alarm in ten thousand million comparisons."""
SPACE = Box((-1.0,), (1.0,), (3,))
PROBLEM = Problem(SPACE, context_width=2, scale=Continuous())
SMALL = FourierThompson(points=4, features=12, draws=9)


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


def feature(policy, state, context, action, seed):
    """The features of one action in one context: their sum after it alone was observed."""
    feedback = observed(action.reshape(1, 1, -1), [[1]], context.reshape(1, 1, -1))
    return policy.update(state, feedback, np.random.default_rng(seed)).statistics.products[
        0, :-2, -1
    ]


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
    state = taught(SMALL, PROBLEM, some_feedback(PROBLEM, 2, rows, seed), seed)
    context = some_contexts(PROBLEM, 2, 30, seed)
    action = SPACE.uniform((2, 30), np.random.default_rng((seed, 7)))
    found = np.exp(SMALL.log_prob(state, context, action))
    for replica, row in np.ndindex(2, 30):
        choice, number = action[replica, row]
        cell = int(choice) * 4 + min(int((number + 1) / 0.5), 3)
        share = np.mean(highest_cells(SMALL, state, replica, context[replica, row]) == cell)
        assert found[replica, row] == pytest.approx(share / 0.5)


# Spaces with numbers cut into cells, and policies that decide on them

MIXED = Box((-1.0, 0.0), (1.0, 5.0), (2,))
POINTS = 3
CELLS = 2 * POINTS**2
VOLUME = (2 / POINTS) * (5 / POINTS)


def number_of_cell(action):
    """The cell of one action of ``MIXED``, the last part counting fastest."""
    choice, first, second = action
    row = min(int((first + 1.0) / (2 / POINTS)), POINTS - 1)
    column = min(int(second / (5 / POINTS)), POINTS - 1)
    return (int(choice) * POINTS + row) * POINTS + column


def slow_density(feedback, replica, action, epsilon):
    """ε-greedy over the mean reward of each cell, and uniform within it."""
    earned = {}
    for row in range(feedback.reward.shape[1]):
        cell = number_of_cell(feedback.action[replica, row])
        earned.setdefault(cell, []).append(feedback.reward[replica, row])
    means = [np.mean(earned[cell]) if cell in earned else 0.0 for cell in range(CELLS)]
    best = [cell for cell in range(CELLS) if np.isclose(means[cell], max(means), rtol=1e-12)]
    greedy = (number_of_cell(action) in best) / len(best)
    return (epsilon / CELLS + (1 - epsilon) * greedy) / VOLUME


@pytest.mark.parametrize("rows", [0, 3, 60])
def test_the_density_is_that_of_the_definition(rows, seed):
    problem = Problem(MIXED, scale=Continuous())
    policy = Gridded(EpsilonGreedy(0.3), points=POINTS)
    feedback = some_feedback(problem, 4, rows, seed)
    state = taught(policy, problem, feedback, seed)
    action = MIXED.uniform((4, 50), np.random.default_rng((seed, 1)))
    found = np.exp(policy.log_prob(state, np.zeros((4, 50, 0)), action))
    for replica, row in np.ndindex(4, 50):
        expected = slow_density(feedback, replica, action[replica, row], 0.3)
        assert found[replica, row] == pytest.approx(expected)


def test_propensities_reach_the_other_policy_as_those_of_cells(seed):
    rng, points = np.random.default_rng(seed), 4
    box = Box((0.0,), (20.0,))
    problem = Problem(box)
    action = box.uniform((2, 80), rng)
    cell = np.floor(action / 5.0).astype(np.int64)
    # The logging policy prefers some cells, and is uniform within each.
    logging = np.array([0.4, 0.3, 0.2, 0.1])
    density = logging[cell[..., 0]] / 5.0
    reward = (rng.random((2, 80)) < 0.5).astype(np.float64)
    feedback = observed(action, reward, log_prob=np.log(density))
    policy = Gridded(RewardConditioned(Counting(1.0), Optimized()), points=points)
    state = taught(policy, problem, feedback, seed)
    for replica in range(2):
        where, paid = cell[replica, :, 0], reward[replica]
        worth = [np.sum(paid[where == one]) / logging[one] / 80 for one in range(points)]
        for level in (0, 1):
            seen = where[paid == level]
            count = [1 + np.sum(seen == one) for one in range(points)]
            expected = np.dot(count, worth) / np.sum(count)
            assert state.inner.values[replica, level] == pytest.approx(expected)
