import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import betaln

from submax import Arms, Continuous, Discrete, Feedback, Problem
from submax.policies import FittedThompson

ALLOWED = 6.5
"""Standard errors: exceeded once in ten thousand million comparisons."""


def feedback_of(problem, action, reward, weight=None):
    action, reward = np.array(action)[..., None], np.array(reward, dtype=np.float64)
    weight = np.ones(reward.shape) if weight is None else np.array(weight)
    context = np.zeros((*reward.shape, problem.context_width))
    return Feedback(context, action, reward, None, weight)


def taught(policy, problem, feedback, seed):
    rng = np.random.default_rng(seed)
    return policy.update(policy.init(problem, len(feedback.reward), rng), feedback, rng)


def some(arms, rows, seed, replicas=1):
    """Rare rewards of arms pulled at random."""
    rng = np.random.default_rng((seed, arms, rows))
    chance = rng.beta(1, 9, size=(replicas, arms))
    arm = rng.integers(arms, size=(replicas, rows))
    paid = rng.random((replicas, rows)) < np.take_along_axis(chance, arm, axis=1)
    return feedback_of(Problem(Arms(arms)), arm, paid)


def listed(policy, state):
    context = np.zeros((len(state.a), 1, state.problem.context_width))
    return policy.probabilities(state, context)[:, 0]


def slow_posterior(arm, success, size):
    """Parameters of one replica: counts in a loop, the prior by maximizing its likelihood."""
    good, bad = [0.0] * size, [0.0] * size
    for one, part in zip(arm, success, strict=True):
        good[one] += part
        bad[one] += 1 - part
    good, bad = np.array(good), np.array(bad)
    pulls = good + bad
    rare = np.sum(good[pulls > 0] / pulls[pulls > 0]) <= np.count_nonzero(pulls) / 2
    one, other = (bad, good) if rare else (good, bad)

    def worth(place):
        likelihood = betaln(one + np.exp(place), other + 1) - betaln(np.exp(place), 1)
        return float(likelihood.sum()) - place**2 / 18

    options = {"xatol": 1e-9}
    best = minimize_scalar(
        lambda place: -worth(place), bounds=(-12, 12), method="bounded", options=options
    )
    fitted = float(np.exp(best.x))
    return (good + 1, bad + fitted) if rare else (good + fitted, bad + 1)


@pytest.mark.parametrize(("arms", "rows"), [(1, 5), (3, 40), (20, 300), (100, 2000)])
def test_the_posterior_is_the_counts_and_the_likeliest_prior(arms, rows, seed):
    feedback = some(arms, rows, seed, replicas=3)
    state = taught(FittedThompson(), Problem(Arms(arms)), feedback, seed)
    for replica in range(3):
        arm, reward = feedback.action[replica, :, 0], feedback.reward[replica]
        a, b = slow_posterior(arm, reward, arms)
        np.testing.assert_allclose(state.a[replica], a, rtol=1e-3)
        np.testing.assert_allclose(state.b[replica], b, rtol=1e-3)


@pytest.mark.parametrize("sharpness", [0.5, 1.0, 4.0])
def test_an_arm_is_as_likely_as_its_draw_is_the_largest(sharpness, seed):
    policy = FittedThompson(sharpness)
    feedback = some(5, 120, seed)
    state = taught(policy, Problem(Arms(5)), feedback, seed)
    a, b = slow_posterior(feedback.action[0, :, 0], feedback.reward[0], 5)
    rng = np.random.default_rng((seed, 1))
    draws = 40_000
    largest = rng.beta(sharpness * a, sharpness * b, size=(draws, 5)).argmax(axis=1)
    share = np.bincount(largest, minlength=5) / draws
    found = listed(policy, state)[0]
    error = np.sqrt(found * (1 - found) / draws) + 1 / draws
    assert np.all(np.abs(share - found) <= ALLOWED * error + 1e-4)


@pytest.mark.parametrize("scale", [Continuous(-2.0, 6.0), Discrete((-2.0, 0.0, 6.0))], ids=repr)
def test_rewards_between_their_bounds_are_parts_of_a_success(scale, seed):
    rng = np.random.default_rng(seed)
    arm = rng.integers(4, size=(1, 50))
    reward = rng.choice([-2.0, 0.0, 6.0], p=[0.6, 0.3, 0.1], size=(1, 50))
    problem = Problem(Arms(4), scale=scale)
    state = taught(FittedThompson(), problem, feedback_of(problem, arm, reward), seed)
    a, b = slow_posterior(arm[0], (reward[0] + 2) / 8, 4)
    np.testing.assert_allclose(state.a[0], a, rtol=1e-3)
    np.testing.assert_allclose(state.b[0], b, rtol=1e-3)


@pytest.mark.parametrize("sharpness", [0.1, 1.0, 4.0])
def test_huge_and_tiny_weights_have_probabilities(sharpness, seed):
    policy, problem = FittedThompson(sharpness), Problem(Arms(3))
    arm, reward = [[0, 0, 1, 1, 2, 2]], [[0.0, 1.0] * 3]
    for weight in ([[1e8, 9e7, 1e8, 1e8, 1e-3, 1e-3]], [[1e-9] * 6], [[1e8, 1e8] * 3]):
        state = taught(policy, problem, feedback_of(problem, arm, reward, weight), seed)
        found = listed(policy, state)
        assert np.all(found >= 0)
        np.testing.assert_allclose(found.sum(axis=-1), 1, atol=1e-9)


def test_the_order_of_the_feedback_and_the_names_of_arms_do_not_matter(seed):
    policy, problem, rng = FittedThompson(), Problem(Arms(6)), np.random.default_rng(seed)
    feedback, name = some(6, 90, seed), rng.permutation(6)
    expected = listed(policy, taught(policy, problem, feedback, seed))
    renamed = taught(policy, problem, feedback._replace(action=name[feedback.action]), seed)
    np.testing.assert_allclose(listed(policy, renamed)[:, name], expected, atol=1e-4)
    arm, reward = feedback.action[..., 0], feedback.reward
    state = policy.init(problem, 1, rng)
    for rows in np.split(rng.permutation(90), [1, 20, 20]):
        state = policy.update(state, feedback_of(problem, arm[:, rows], reward[:, rows]), rng)
    np.testing.assert_allclose(listed(policy, state), expected, atol=1e-4)
