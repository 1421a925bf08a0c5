"""Policies that are weighted by how well they predicted."""

import numpy as np
from scipy.optimize import minimize

from submax import Arms, Feedback, Problem
from submax.estimators import Counting
from submax.models.regression.logistic import DRAWS, _Regression
from submax.policies import RewardConditioned
from submax.policies.adaptive import LogisticSubMax, PredictiveMixture
from submax.strategies import SubMax

COUNTS = RewardConditioned(Counting(), SubMax())


def rows_of(rng, chance, rows, width=2):
    """Uniformly chosen rows; ``chance`` of contexts ``[n, D]`` is ``[n, K]``."""
    context = rng.normal(size=(1, rows, width))
    expected = chance(context[0])
    action = rng.integers(expected.shape[1], size=(1, rows, 1))
    paid = rng.random(rows) < expected[np.arange(rows), action[0, :, 0]]
    log_prob = np.full((1, rows), -np.log(expected.shape[1]))
    return Feedback(context, action, paid[None] * 1.0, log_prob, np.ones((1, rows)))


def test_weights_are_the_product_of_predicted_probabilities(seed):
    rng, mixture = np.random.default_rng(seed), PredictiveMixture((COUNTS, LogisticSubMax()))
    state = mixture.init(Problem(Arms(2), 2), 1, rng)
    members, score, seen = list(state.members), np.zeros(2), 0
    chance = lambda context: 1 / (1 + np.exp(-context))  # noqa: E731 - a formula
    for rows in (20, 20, 40):
        feedback = rows_of(rng, chance, rows)
        score *= seen / (seen + rows)
        seen += rows
        for number, policy in enumerate(mixture.policies):
            expected = policy.expected_rewards(members[number], feedback.context)[0]
            expected = np.broadcast_to(expected, (rows, 2))
            value = expected[np.arange(rows), feedback.action[0, :, 0]]
            if not np.isnan(value).any():
                value = np.clip(value, 0.01, 0.99)
                value = np.where(feedback.reward[0] > 0, value, 1 - value)
                score[number] += np.log(value).sum()
            elif rows == 20:
                score[number] += rows * np.log(0.5)
        state = mixture.update(state, feedback, np.random.default_rng(1))
        # Each part of these rows is learned from at once, with the same stream for the policies.
        members = list(state.members)
    expected = np.exp(score - score.max())
    np.testing.assert_allclose(state.shares[0], expected / expected.sum(), atol=2e-3)


def test_both_forms_of_the_logistic_regression_find_the_mode(seed):
    """The primal form and the dual one, against a general minimizer."""
    rng, width = np.random.default_rng(seed), 6
    x = rng.normal(size=(40, width))
    success, weight = (rng.random(40) < 0.5) * 1.0, rng.uniform(0.5, 2.0, size=40)
    mean, variance = rng.normal(size=width), rng.uniform(0.1, 2.0, size=width)

    def loss(point):
        score = x @ point
        prior = ((point - mean) ** 2 / variance).sum() / 2
        return weight @ (np.logaddexp(0.0, score) - success * score) + prior

    expected = minimize(loss, np.zeros(width)).x
    regression = _Regression(x, success, weight, mean, variance, None, None)
    normal = rng.standard_normal((DRAWS, width))
    primal, _ = regression._primal(np.zeros(width), normal)
    dual, _ = regression._dual(np.zeros(width), normal, rng)
    np.testing.assert_allclose(primal, expected, atol=1e-2)
    np.testing.assert_allclose(dual, expected, atol=1e-2)
