import numpy as np
import pytest

from submax.core.arms import Arms
from submax.core.continuous import Continuous
from submax.core.errors import InvalidValue
from submax.core.feedback import Feedback
from submax.core.problem import Problem
from submax.core.slots import Slots
from submax.policies import linear_statistics, make_policy
from submax.policies.linear_statistics import LinearStatistics
from submax.policies.linucb import LinUCB
from submax.testing.examples import padded, some_contexts, some_feedback

CONTEXTUAL = Problem(Slots((2, 2)), context_width=3)


def ridge_regression(feedback, replica, action, ridge, space):
    """A and θ̂ of one action, from the rows themselves."""
    rows = space.index(feedback.action[replica]) == action
    x = np.hstack([np.ones((rows.sum(), 1)), feedback.context[replica][rows]])
    w = feedback.weight[replica][rows]
    precision = ridge * np.eye(x.shape[1]) + (w[:, None] * x).T @ x
    return precision, np.linalg.solve(precision, x.T @ (w * feedback.reward[replica][rows]))


def moments(state, context):
    _, mean, deviation = zip(*state.posterior(context), strict=True)
    return np.concatenate(mean, axis=1), np.concatenate(deviation, axis=1)


def test_the_regression_is_the_one_of_its_rows(seed):
    rng = np.random.default_rng(seed)
    feedback = some_feedback(CONTEXTUAL, 3, 40, seed)
    feedback = feedback._replace(weight=rng.integers(0, 3, size=(3, 40)).astype(np.float64))
    state = LinearStatistics.empty(CONTEXTUAL, 3, 0.7)
    for half in (slice(0, 15), slice(15, None)):
        state = state.add(Feedback(*(part[:, half] for part in feedback)))
    context = some_contexts(CONTEXTUAL, 3, 5, seed)
    mean, deviation = moments(state, context)
    x = np.concatenate([np.ones((3, 5, 1)), context], axis=-1)
    for replica in range(3):
        for action in range(4):
            precision, theta = ridge_regression(feedback, replica, action, 0.7, CONTEXTUAL.space)
            assert np.allclose(mean[replica, :, action], x[replica] @ theta)
            solved = np.linalg.solve(precision, x[replica].T)
            expected = np.sqrt(np.sum(x[replica].T * solved, axis=0))
            assert np.allclose(deviation[replica, :, action], expected)


def test_rows_that_are_not_there_change_nothing(seed):
    feedback = some_feedback(CONTEXTUAL, 2, 10, seed)
    state = LinearStatistics.empty(CONTEXTUAL, 2, 1.0)
    for one, other in zip(state.add(feedback)[1:], state.add(padded(feedback))[1:], strict=True):
        assert np.array_equal(one, other)
    nothing = padded(feedback)._replace(weight=np.zeros((2, 20)))
    assert state.add(nothing) is state


def test_it_takes_the_highest_upper_bound(seed):
    policy, rng = LinUCB(alpha=1.5, ridge=2.0), np.random.default_rng(seed)
    state = policy.init(CONTEXTUAL, 2, rng)
    state = policy.update(state, some_feedback(CONTEXTUAL, 2, 30, seed), rng)
    context = some_contexts(CONTEXTUAL, 2, 50, seed)
    mean, deviation = moments(state, context)
    decision = policy.act(state, context, rng)
    expected = np.argmax(mean + 1.5 * deviation, axis=-1)
    assert np.array_equal(CONTEXTUAL.space.index(decision.action), expected)
    assert np.all(decision.log_prob == 0)


def test_blocks_of_rows_change_nothing(seed, monkeypatch):
    policy, rng = LinUCB(), np.random.default_rng(seed)
    state = policy.init(CONTEXTUAL, 2, rng)
    state = policy.update(state, some_feedback(CONTEXTUAL, 2, 30, seed), rng)
    context = some_contexts(CONTEXTUAL, 2, 50, seed)
    whole = policy.act(state, context, np.random.default_rng(seed))
    monkeypatch.setattr(linear_statistics, "BLOCK", 200)
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
    # The first arm has disappointed; the others still tie.
    bad = Feedback(
        np.zeros((1, 1, width)), np.zeros((1, 1, 1), int), -np.ones((1, 1)), None, np.ones((1, 1))
    )
    decision = policy.act(policy.update(state, bad, rng), np.zeros((1, 100, width)), rng)
    assert set(decision.action.ravel()) == {1, 2, 3}
    assert np.allclose(decision.log_prob, -np.log(3))


def test_it_learns_which_arm_suits_which_context(seed):
    problem = Problem(Arms(3), context_width=2)
    assert reward_after(make_policy("linucb"), problem, seed) > 0.9


def reward_after(policy, problem, seed):
    """Mean reward at the end of 20 batches where the sign of the context says the arm."""
    rng = np.random.default_rng(seed)
    state = policy.init(problem, 4, rng)
    for _ in range(20):
        context = rng.choice([-1.0, 1.0], size=(4, 50, problem.context_width))
        decision = policy.act(state, context, rng)
        reward = (decision.action[..., 0] == (context[..., 0] > 0)).astype(np.float64)
        feedback = Feedback(context, decision.action, reward, None, np.ones(reward.shape))
        state = policy.update(state, feedback, rng)
    return reward.mean()


@pytest.mark.parametrize("value", [-0.1, float("nan"), "1", None, True])
def test_a_bad_alpha_is_refused(value):
    with pytest.raises(InvalidValue, match="alpha must be a finite number, 0 or more, not"):
        LinUCB(alpha=value)


@pytest.mark.parametrize("value", [0, -1.0, float("inf"), "1", None])
def test_a_bad_ridge_is_refused(value):
    with pytest.raises(InvalidValue, match="ridge must be a finite number above 0, not"):
        LinUCB(ridge=value)


def test_too_large_problems_are_refused():
    with pytest.raises(InvalidValue, match="keeps a number for every joint action"):
        LinUCB().init(Problem(Slots((100,) * 6)), 1, np.random.default_rng(0))
    with pytest.raises(InvalidValue, match="take fewer replicas"):
        LinUCB().init(Problem(Arms(2**16), context_width=99), 10, np.random.default_rng(0))
