"""Linear regressions for each action, and the decisions that follow from them."""

import numpy as np
import pytest
from observations import listed, observed, taught
from scipy import integrate, special

from submax import Arms, Continuous, Problem, Slots
from submax.core.registry import references_user_code
from submax.models.regression.features import standardized
from submax.policies import (
    GreedyRegression,
    HillClimbingThompson,
    LinearThompson,
    LinUCB,
    Tempered,
    Thompson,
)
from submax.research.rivals.climbing import (
    Hills,
    SlotRegression,
    active_effects,
    climbed,
    effects_of,
)
from submax.research.rivals.neural import largest_normal
from submax.testing.assertions import SMALLEST_P_VALUE, goodness_of_fit
from submax.testing.problems import repeated, some_contexts, some_feedback

CONTEXTUAL = Problem(Slots((2, 2)), context_width=3)


def regression(feedback, replica, action, belief, space):
    """Mean and covariance of one action's coefficients by Bayes' rule, from the rows themselves."""
    rows = space.index(feedback.action[replica]) == action
    shift, scale = belief.feature_map.shift, belief.feature_map.scale
    z = standardized(feedback.context[replica][rows].astype(np.float64), shift, scale)
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
        beliefs = policy.update(beliefs, feedback.rows(part), rng)
    settings = policy.settings(CONTEXTUAL)
    for replica, belief in enumerate(beliefs.beliefs):
        roots = belief.posterior_covariance(settings).roots()
        for action in range(4):
            mean, covariance = regression(feedback, replica, action, belief, CONTEXTUAL.space)
            raw = belief.feature_map.for_raw(mean)
            np.testing.assert_allclose(belief.coefficients[action], raw, atol=1e-9)
            np.testing.assert_allclose(roots[action].T @ roots[action], covariance, atol=1e-9)


PROBLEM = Problem(Arms(3), context_width=2)


@pytest.mark.parametrize("width", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("problem", [PROBLEM, Problem(Arms(5))], ids=["context", "no context"])
def test_shares_of_draws_are_the_chances_to_be_the_largest(problem, width, seed):
    # The scores of independent regressions are independent normals: their chances are known.
    policy = LinearThompson(width=width, draws=4096)
    state = taught(policy, problem, some_feedback(problem, 1, 60, seed), seed)
    context = some_contexts(problem, 1, 1, seed)
    (belief,) = state.beliefs
    roots = belief.posterior_covariance(policy.settings(problem)).roots()
    features = belief.feature_map.rows(context[0])
    deviation = width * np.linalg.norm(roots @ features[0], axis=1)
    raw = belief.feature_map.raw(context[0])
    expected = largest_normal(raw[0] @ belief.coefficients.T, deviation)
    found = policy.probabilities(state, context)[0, 0]
    drawn = np.repeat(np.arange(problem.space.size), np.rint(found * 4096).astype(int))
    assert drawn.size == 4096
    assert goodness_of_fit(drawn, expected) > SMALLEST_P_VALUE


def upper_bounds(state, context, alpha):
    """The posterior means and deviations of the regressions: ``[R, n, K]``."""
    found = []
    for belief, asked in zip(state.beliefs, context, strict=True):
        roots = belief.posterior_covariance(LinUCB().settings(CONTEXTUAL)).roots()
        deviation = np.linalg.norm(roots @ belief.feature_map.rows(asked).T, axis=1).T
        mean = belief.feature_map.raw(asked) @ belief.coefficients.T
        found.append(mean + alpha * deviation)
    return np.array(found)


@pytest.mark.parametrize("alpha", [0.0, 1.5])
def test_it_takes_the_highest_upper_bound(alpha, seed):
    policy, rng = LinUCB(alpha=alpha), np.random.default_rng(seed)
    state = taught(policy, CONTEXTUAL, some_feedback(CONTEXTUAL, 2, 60, seed), seed)
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
    state = policy.update(state, observed(action, reward, context), rng)
    probabilities = listed(policy, state)[0]
    assert probabilities[2] == probabilities[3]
    assert probabilities[0] == 0


@pytest.mark.parametrize("policy", [LinearThompson(draws=4096), LinUCB()], ids=["thompson", "ucb"])
def test_more_rows_than_are_computed_at_once_are_each_as_alone(policy, seed):
    problem = Problem(Arms(60), context_width=20)
    state = taught(policy, problem, some_feedback(problem, 1, 60, seed), seed)
    context = some_contexts(problem, 1, 300, seed)
    whole = policy.probabilities(state, context)
    for row in (0, 150, 299):
        alone = policy.probabilities(state, context[:, row : row + 1])
        np.testing.assert_array_equal(alone[:, 0], whole[:, row])


# Hill climbing thompson

JOINT = Problem(Slots((2, 3, 2)))


def features(effects, action):
    """The whole vector x, most of it 0, written out by hand."""
    x = [1.0]
    one_hot = [np.eye(size)[choice] for size, choice in zip(effects.sizes, action, strict=True)]
    x.extend(np.concatenate(one_hot))
    for first in range(len(action)):
        for second in range(first + 1, len(action)):
            x.extend(np.outer(one_hot[first], one_hot[second]).ravel())
    return np.array(x)


def matched_moments(mean, variance, x, sign):
    """Mean and variance of every weight after one row, each by integration of its posterior."""
    result = []
    for own in range(len(mean)):
        rest = np.arange(len(mean)) != own
        others = x[rest] @ mean[rest]
        noise = np.sqrt(1 + x[rest] ** 2 @ variance[rest])
        spread = np.sqrt(variance[own])

        def density(z, power, own=own, others=others, noise=noise, spread=spread):
            weight = mean[own] + spread * z
            likelihood = special.ndtr(sign * (weight * x[own] + others) / noise)
            return weight**power * np.exp(-(z**2) / 2) * likelihood

        total, first, second = (
            integrate.quad(density, -10, 10, args=(power,), epsabs=1e-12)[0] for power in range(3)
        )
        result.append((first / total, second / total - (first / total) ** 2))
    return np.array(result).T


@pytest.mark.parametrize("reward", [0.0, 1.0])
@pytest.mark.parametrize("problem", [JOINT, Problem(Arms(3))], ids=str)
def test_a_row_moves_the_posterior_to_the_matching_normals(problem, reward, seed):
    rng = np.random.default_rng(seed)
    effects = effects_of(problem.space.choices)
    shape = (1, effects.width)
    regression = SlotRegression(rng.normal(size=shape) / 3, rng.uniform(0.1, 2, size=shape))
    action = problem.space.action(np.array(rng.integers(problem.space.size)))
    found = regression.add(effects, problem, observed(action.reshape(1, 1, -1), [[reward]]))
    x = features(effects, action)
    expected = matched_moments(regression.mean[0], regression.variance[0], x, 2 * reward - 1)
    assert np.allclose(found.mean[0], expected[0], rtol=0, atol=1e-8)
    assert np.allclose(found.variance[0], expected[1], rtol=0, atol=1e-8)


def test_no_single_change_improves_where_the_climb_ends(seed):
    rng = np.random.default_rng(seed)
    space = Slots((3, 4, 2))
    effects = effects_of(space.sizes)
    weights = rng.normal(size=(60, effects.width)).astype(np.float32)
    hills = Hills.of(effects, weights)
    starts = rng.integers(space.sizes, size=(60, 8, 3))
    end = climbed(hills.scores, hills.heights, starts, 50)
    listing = space.listing()
    heights = weights[:, active_effects(effects, listing)[:, 1:]].sum(axis=-1)
    best = listing[heights.argmax(axis=-1)]
    reached = heights[np.arange(60), space.index(end)]
    for slot, size in enumerate(space.sizes):
        for choice in range(size):
            changed = end.copy()
            changed[:, slot] = choice
            assert np.all(heights[np.arange(60), space.index(changed)] <= reached + 1e-5)
    assert np.mean(np.all(end == best, axis=-1)) > 0.8
    first = climbed(hills.scores, hills.heights, starts[:, :1], 50)
    assert np.all(heights[np.arange(60), space.index(first)] <= reached + 1e-5)


def test_it_learns_among_more_actions_than_can_be_listed(seed):
    rng = np.random.default_rng(seed)
    problem = Problem(Slots((30,) * 14))
    policy = HillClimbingThompson(draws=30, restarts=1)
    state = policy.init(problem, 1, rng)
    decision = policy.act(state, np.zeros((1, 200, 0)), rng)
    assert np.allclose(decision.log_prob, -14 * np.log(30))
    reward = (decision.action[..., 0] < 15).astype(np.float64)
    state = policy.update(state, observed(decision.action, reward), rng)
    after = policy.act(state, np.zeros((1, 200, 0)), rng)
    assert np.allclose(policy.log_prob(state, np.zeros((1, 200, 0)), after.action), after.log_prob)
    assert np.mean(after.action[..., 0] < 15) > 0.6


def test_a_single_decision_after_each_update_has_the_distribution_of_the_pool(seed):
    """Actions of many pools with one draw each, against the shares of one large pool."""
    rng, replicas = np.random.default_rng(seed), 400
    rows = some_feedback(JOINT, 1, 12, seed)
    single, pool = HillClimbingThompson(draws=1), HillClimbingThompson(draws=4000)
    state = taught(single, JOINT, repeated(rows, replicas), seed)
    drawn, _ = single.act(state, np.zeros((replicas, 1, 0)), rng)
    expected = listed(pool, taught(pool, JOINT, rows, seed))[0]
    counts = np.bincount(JOINT.space.index(drawn).ravel(), minlength=JOINT.space.size)
    # The pool's shares have errors too, a tenth of the variance; 5 standard errors for 12 actions.
    error = np.sqrt(expected * (1 - expected) * replicas * 1.1 + 1)
    assert np.abs(counts - replicas * expected).max() < 5 * error.max()


# The policy that takes the highest prediction, and variants with another temperature

LINEAR = "sklearn.linear_model.LinearRegression"


REAL = Problem(Arms(3), context_width=2, scale=Continuous())


def real_feedback(seed):
    rng = np.random.default_rng(seed)
    context, arm = rng.normal(size=(1, 400, 2)), rng.integers(3, size=(1, 400))
    reward = context[..., 0] * (arm - 1) + 0.5 * (arm == 1) + 0.1 * rng.normal(size=(1, 400))
    return observed(arm, reward, context)


@pytest.mark.parametrize("others", [(), ("sklearn.dummy.DummyRegressor",)])
def test_it_is_the_argmax_of_a_least_squares_fit_for_each_action(others, seed):
    """Of several regressors the predictions are averaged; the other one predicts the mean."""
    given, policy = real_feedback(seed), GreedyRegression((LINEAR, *others))
    state = taught(policy, REAL, given, seed)
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
    given, policy = real_feedback(seed), GreedyRegression(LINEAR)
    reward = np.where(given.action[..., 0] == 2, 100.0, given.reward)
    weight = np.ones_like(reward)
    weight[0, np.flatnonzero(given.action[0, :, 0] == 2)[5:]] = 0
    state = taught(policy, REAL, given._replace(reward=reward, weight=weight), seed)
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


@pytest.mark.parametrize("temperature", [0.0, 0.25, 1.0, 4.0])
def test_probabilities_are_powers_of_those_of_the_policy(temperature, seed):
    policy, problem = Thompson(), Problem(Arms(3))
    tempered = Tempered(policy, temperature)
    state = taught(tempered, problem, some_feedback(problem, 1, 20, seed), seed)
    base, found = listed(policy, state)[0], listed(tempered, state)[0]
    expected = base ** (1 / temperature) if temperature else 1.0 * (base == base.max())
    assert found == pytest.approx(expected / expected.sum())
