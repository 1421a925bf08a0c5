import numpy as np
import pytest
from refusals import raises_code

from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.core.rewards.continuous import Continuous
from submax.core.spaces.arms import Arms
from submax.core.spaces.slots import Slots
from submax.policies.linear import linucb
from submax.policies.linear.linucb import LinUCB
from submax.testing.rules.examples import some_contexts, some_feedback

CONTEXTUAL = Problem(Slots((2, 2)), context_width=3)


def taught(policy, seed):
    rng = np.random.default_rng(seed)
    return policy.update(
        policy.init(CONTEXTUAL, 2, rng), some_feedback(CONTEXTUAL, 2, 60, seed), rng
    )


def upper_bounds(state, context, alpha):
    """The posterior means and deviations of the regressions: ``[R, n, K]``."""
    found = []
    for belief, asked in zip(state.linear.beliefs, context, strict=True):
        posterior = belief.posterior(state.linear.settings(0, 1.0))
        features = belief.feature_map.rows(asked)
        mean = features @ posterior.coefficients.T
        found.append(mean + alpha * np.sqrt(posterior.variance(features)))
    return np.array(found)


@pytest.mark.parametrize("alpha", [0.0, 1.5])
def test_it_takes_the_highest_upper_bound(alpha, seed):
    policy, rng = LinUCB(alpha=alpha), np.random.default_rng(seed)
    state = taught(policy, seed)
    context = some_contexts(CONTEXTUAL, 2, 50, seed)
    decision = policy.act(state, context, rng)
    expected = np.argmax(upper_bounds(state, context, alpha), axis=-1)
    assert np.array_equal(CONTEXTUAL.space.index(decision.action), expected)
    assert np.all(decision.log_prob == 0)


def test_rows_that_do_not_renew_the_posterior_leave_the_bounds(seed):
    policy, rng = LinUCB(), np.random.default_rng(seed)
    state = policy.init(CONTEXTUAL, 1, rng)
    state = policy.update(state, some_feedback(CONTEXTUAL, 1, 1000, seed), rng)
    later = policy.update(state, some_feedback(CONTEXTUAL, 1, 3, seed + 1), rng)
    assert later.roots[0] is state.roots[0]
    assert later.linear.beliefs[0].sums.weight == 1003
    renewed = policy.update(later, some_feedback(CONTEXTUAL, 1, 60, seed + 1), rng)
    assert renewed.roots[0] is not state.roots[0]


def test_blocks_of_rows_change_nothing(seed, monkeypatch):
    policy = LinUCB()
    state = taught(policy, seed)
    context = some_contexts(CONTEXTUAL, 2, 50, seed)
    whole = policy.act(state, context, np.random.default_rng(seed))
    monkeypatch.setattr(linucb, "PRODUCTS_AT_ONCE", 200)
    parts = policy.act(state, context, np.random.default_rng(seed))
    assert np.array_equal(whole.action, parts.action)
    assert np.allclose(policy.log_prob(state, context, whole.action), 0)


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


@pytest.mark.parametrize("value", [-0.1, float("nan"), "1", None, True])
def test_a_bad_alpha_is_refused(value):
    with raises_code("invalid-input", "alpha"):
        LinUCB(alpha=value)


def test_too_large_problems_are_refused():
    with raises_code("invalid-input"):
        LinUCB().init(Problem(Arms(2**16), context_width=99), 10, np.random.default_rng(0))
