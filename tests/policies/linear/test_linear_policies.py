"""Linear regressions for each action, and the decisions that follow from them."""

import numpy as np
import pytest

from submax import Arms, Continuous, Feedback, Problem, Slots
from submax.policies import LinearThompson, LinUCB
from submax.research.rivals.neural import largest_normal
from submax.testing.assertions import SMALLEST_P_VALUE, goodness_of_fit
from submax.testing.problems import some_contexts, some_feedback

CONTEXTUAL = Problem(Slots((2, 2)), context_width=3)


def regression(feedback, replica, action, belief, space):
    """Mean and covariance of one action's coefficients by Bayes' rule, from the rows themselves."""
    rows = space.index(feedback.action[replica]) == action
    z = belief.feature_map.standardized(feedback.context[replica][rows].astype(np.float64))
    x = np.hstack([np.ones((rows.sum(), 1)), z / 3**0.5])
    w, noise = feedback.weight[replica][rows], belief.prior.noise
    precision = np.diag(1 / belief.prior.variance[[0, 1, 1, 1], 0]) + (w[:, None] * x).T @ x / noise
    reward = feedback.reward[replica][rows] - belief.centre
    return np.linalg.solve(precision, x.T @ (w * reward) / noise), np.linalg.inv(precision)


def test_the_regressions_are_those_of_their_rows(seed):
    rng = np.random.default_rng(seed)
    feedback = some_feedback(CONTEXTUAL, 3, 60, seed)
    feedback = feedback._replace(weight=rng.integers(0, 3, size=(3, 60)).astype(np.float64))
    policy = LinearThompson(draws=5)
    beliefs = policy.init(CONTEXTUAL, 3, rng)
    for part in (slice(0, 15), slice(15, None)):
        taken = (None if column is None else column[:, part] for column in feedback)
        beliefs = policy.update(beliefs, Feedback(*taken), rng)
    settings = policy.settings(CONTEXTUAL)
    for replica, belief in enumerate(beliefs.beliefs):
        roots = belief.posterior(settings).roots()
        for action in range(4):
            mean, covariance = regression(feedback, replica, action, belief, CONTEXTUAL.space)
            raw = belief.feature_map.for_raw(mean)
            np.testing.assert_allclose(belief.coefficients[action], raw, atol=1e-9)
            np.testing.assert_allclose(roots[action].T @ roots[action], covariance, atol=1e-9)


@pytest.mark.parametrize("policy", [LinearThompson(), LinUCB()], ids=["thompson", "ucb"])
@pytest.mark.parametrize(("unit", "offset", "context_unit"), [(1e6, 0.0, 1e-9), (0.01, 1e5, 1e9)])
def test_units_change_nothing(policy, unit, offset, context_unit, seed):
    problem = Problem(Arms(3), context_width=4, scale=Continuous())
    rng = np.random.default_rng(seed)
    context, action = rng.normal(size=(1, 200, 4)), rng.integers(3, size=(1, 200, 1))
    reward = context[..., 0] * action[..., 0] + rng.normal(size=(1, 200))
    asked = rng.normal(size=(1, 50, 4))
    tables = []
    for units in ((1.0, 0.0, 1.0), (unit, offset, context_unit)):
        changed = Feedback(
            context * units[2], action, units[1] + units[0] * reward, None, np.ones((1, 200))
        )
        fresh = np.random.default_rng(seed)
        state = policy.update(policy.init(problem, 1, fresh), changed, fresh)
        tables.append(policy.probabilities(state, asked * units[2]))
    # Where two scores are nearly equal, rounding may decide between them.
    assert np.mean(tables[0] != tables[1]) <= 0.01


@pytest.mark.parametrize("policy", [LinearThompson(), LinUCB()], ids=["thompson", "ucb"])
def test_equal_rewards_are_no_reason_to_prefer_an_action(policy, seed):
    rng = np.random.default_rng(seed)
    feedback = some_feedback(CONTEXTUAL, 2, 30, seed)
    state = policy.init(CONTEXTUAL, 2, rng)
    context = some_contexts(CONTEXTUAL, 2, 20, seed)
    assert np.all(policy.probabilities(state, context) == 0.25)
    state = policy.update(state, feedback._replace(reward=np.ones((2, 30))), rng)
    assert np.all(policy.probabilities(state, context) == 0.25)


def mean_reward_at_the_end(policy, seed):
    """Of 20 batches in which the sign of the context says the arm."""
    problem, rng = Problem(Arms(3), context_width=2), np.random.default_rng(seed)
    state = policy.init(problem, 4, rng)
    for _ in range(20):
        context = rng.choice([-1.0, 1.0], size=(4, 50, 2))
        decision = policy.act(state, context, rng)
        reward = (decision.action[..., 0] == (context[..., 0] > 0)).astype(np.float64)
        feedback = Feedback(
            context, decision.action, reward, decision.log_prob, np.ones(reward.shape)
        )
        state = policy.update(state, feedback, rng)
    return reward.mean()


@pytest.mark.parametrize("policy", [LinearThompson(), LinUCB()], ids=["thompson", "ucb"])
def test_it_learns_which_arm_suits_which_context(policy, seed):
    assert mean_reward_at_the_end(policy, seed) > 0.9


PROBLEM = Problem(Arms(3), context_width=2)


def taught(policy, problem, seed, replicas=1):
    rng = np.random.default_rng(seed)
    feedback = some_feedback(problem, replicas, 60, seed)
    return policy.update(policy.init(problem, replicas, rng), feedback, rng)


@pytest.mark.parametrize("width", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("problem", [PROBLEM, Problem(Arms(5))], ids=["context", "no context"])
def test_shares_of_draws_are_the_chances_to_be_the_largest(problem, width, seed):
    # The scores of independent regressions are independent normals: their chances are known.
    policy = LinearThompson(width=width, draws=4096)
    state = taught(policy, problem, seed)
    context = some_contexts(problem, 1, 1, seed)
    (belief,) = state.beliefs
    posterior = belief.posterior(policy.settings(problem))
    features = belief.feature_map.rows(context[0])
    deviation = width * np.sqrt(posterior.variance(features)[0])
    expected = largest_normal(features[0] @ posterior.coefficients.T, deviation)
    found = policy.probabilities(state, context)[0, 0]
    drawn = np.repeat(np.arange(problem.space.size), np.rint(found * 4096).astype(int))
    assert drawn.size == 4096
    assert goodness_of_fit(drawn, expected) > SMALLEST_P_VALUE


def upper_bounds(state, context, alpha):
    """The posterior means and deviations of the regressions: ``[R, n, K]``."""
    found = []
    for belief, asked in zip(state.beliefs, context, strict=True):
        posterior = belief.posterior(LinUCB().settings(CONTEXTUAL))
        features = belief.feature_map.rows(asked)
        mean = features @ posterior.coefficients.T
        found.append(mean + alpha * np.sqrt(posterior.variance(features)))
    return np.array(found)


@pytest.mark.parametrize("alpha", [0.0, 1.5])
def test_it_takes_the_highest_upper_bound(alpha, seed):
    policy, rng = LinUCB(alpha=alpha), np.random.default_rng(seed)
    state = taught(policy, CONTEXTUAL, seed, replicas=2)
    context = some_contexts(CONTEXTUAL, 2, 50, seed)
    decision = policy.act(state, context, rng)
    expected = np.argmax(upper_bounds(state, context, alpha), axis=-1)
    assert np.array_equal(CONTEXTUAL.space.index(decision.action), expected)
    assert np.all(decision.log_prob == 0)


@pytest.mark.parametrize("width", [0, 2])
def test_actions_that_tie_share_the_probability(width, seed):
    problem = Problem(Arms(4), context_width=width, scale=Continuous())
    policy, rng = LinUCB(), np.random.default_rng(seed)
    state = policy.init(problem, 1, rng)
    context = some_contexts(problem, 1, 100, seed)
    decision = policy.act(state, context, rng)
    assert set(decision.action.ravel()) == {0, 1, 2, 3}
    assert np.allclose(decision.log_prob, -np.log(4))
    # The first arm has disappointed and the second has not; the others were not tried and tie.
    context = rng.normal(size=(1, 20, width))
    action = np.repeat([[[0], [1]]], 10, axis=1)
    reward = -1.0 - 2.0 * (action[..., 0] == 0) + 0.01 * rng.normal(size=(1, 20))
    known = Feedback(context, action, reward, None, np.ones((1, 20)))
    state = policy.update(state, known, rng)
    probabilities = policy.probabilities(state, np.zeros((1, 1, width)))[0, 0]
    assert probabilities[2] == probabilities[3]
    assert probabilities[0] == 0


@pytest.mark.parametrize("policy", [LinearThompson(draws=4096), LinUCB()], ids=["thompson", "ucb"])
def test_more_rows_than_are_computed_at_once_are_each_as_alone(policy, seed):
    problem = Problem(Arms(60), context_width=20)
    state, context = taught(policy, problem, seed), some_contexts(problem, 1, 300, seed)
    whole = policy.probabilities(state, context)
    for row in (0, 150, 299):
        alone = policy.probabilities(state, context[:, row : row + 1])
        np.testing.assert_array_equal(alone[:, 0], whole[:, row])
