"""What features of actions are good for: an action that was never tried is judged by its like."""

import numpy as np
import pytest

from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.core.rewards.continuous import Continuous
from submax.core.spaces.arms import Arms
from submax.estimators.bayesian_features import MOST_SHARED, BayesianFeatures
from submax.models.regression.described_actions import MOST_COLUMNS
from submax.policies.adaptive.posterior_submax import PosteriorSubMax

PRICES = np.linspace(1.0, 3.0, 8)
NEW = len(PRICES) - 1
"""The dearest action, which no row has."""
ASKED = np.array([[[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0]]])
SMALL = BayesianFeatures(features=40)


def truth(price, context):
    return 0.1 + 0.2 * price + 0.1 * price * context[..., 0]


def learned(features, seed, estimator=SMALL, noise=0.1, rows=300):
    rng = np.random.default_rng(seed)
    problem = Problem(Arms(len(PRICES)), 2, Continuous(), features)
    context = rng.standard_normal((1, rows, 2))
    action = rng.integers(NEW, size=(1, rows, 1))
    reward = truth(PRICES[action[..., 0]], context) + noise * rng.standard_normal((1, rows))
    log_prob = np.full((1, rows), -np.log(NEW))
    feedback = Feedback(context, action, reward, log_prob, np.ones((1, rows)))
    policy = PosteriorSubMax(estimator)
    return policy, policy.update(policy.init(problem, 1, rng), feedback, rng)


@pytest.mark.parametrize("seed", range(3))
def test_an_action_that_was_never_tried_is_expected_on_the_line_of_its_price(seed):
    policy, state = learned((tuple((price,) for price in PRICES),), seed)
    found = policy.estimator.belief(state.params, ASKED).expected_rewards()[0, :, NEW]
    np.testing.assert_allclose(found, truth(PRICES[NEW], ASKED)[0], atol=0.06)
    assert policy.probabilities(state, ASKED)[0, 0, NEW] > 0.5


@pytest.mark.parametrize("seed", range(3))
def test_without_features_it_is_expected_to_be_like_the_average(seed):
    policy, state = learned((), seed)
    found = policy.estimator.belief(state.params, ASKED).expected_rewards()[0, 0, NEW]
    assert abs(found - truth(PRICES[:NEW].mean(), ASKED)[0, 0]) < 0.1
    assert policy.probabilities(state, ASKED)[0, 0, NEW] < 0.1


def test_features_that_say_nothing_are_not_believed():
    rng = np.random.default_rng(5)
    shuffled = tuple((price,) for price in rng.permutation(PRICES))
    policy, state = learned((shuffled,), 0)
    plain, bare = learned((), 0)
    tried = slice(0, NEW)
    found = policy.estimator.belief(state.params, ASKED).expected_rewards()[0, :, tried]
    expected = plain.estimator.belief(bare.params, ASKED).expected_rewards()[0, :, tried]
    np.testing.assert_allclose(found, expected, atol=0.05)


def test_many_features_are_reduced_and_leave_fewer_features_of_the_context():
    rows = tuple(map(tuple, np.random.default_rng(0).standard_normal((40, 30)).tolist()))
    problem = Problem(Arms(40), 3, action_features=(rows,))
    settings = BayesianFeatures().settings(problem)
    assert settings.action_features.shape == (40, MOST_COLUMNS)
    assert settings.features == MOST_SHARED // (1 + MOST_COLUMNS)
