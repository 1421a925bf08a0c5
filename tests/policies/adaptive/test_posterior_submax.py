import numpy as np
import pytest
from refusals import raises_code

import submax
from submax import Arms, Continuous, Feedback, Memory, Problem
from submax.core.serialization import read_state, state_bytes
from submax.estimators import BayesianFeatures
from submax.policies import PosteriorSubMax
from submax.simulation import BatchedRewards
from submax.strategies.iterated import mean_submax_of, submax_of

SMALL = PosteriorSubMax(BayesianFeatures(features=24, draws=8))


def rows(context, action, reward):
    """One replica of rows that were chosen uniformly among three arms."""
    shape = (1, len(reward))
    return Feedback(
        np.asarray(context, dtype=np.float64)[None],
        np.asarray(action)[None, :, None],
        np.asarray(reward, dtype=np.float64)[None],
        np.full(shape, -np.log(3)),
        np.ones(shape),
    )


def taught(policy, problem, context, action, reward, seed=0):
    rng = np.random.default_rng(seed)
    state = policy.init(problem, 1, rng)
    return policy.update(state, rows(context, action, reward), rng)


def by_hand(value, depth):
    """SubMax by its equation, in plain Python."""
    policy = [1 / len(value)] * len(value)
    for _ in range(depth):
        mean = sum(p * v for p, v in zip(policy, value, strict=True))
        mass = [p * max(v - mean, 0.0) for p, v in zip(policy, value, strict=True)]
        if sum(mass) > 0:
            policy = [one / sum(mass) for one in mass]
    return policy


@pytest.mark.parametrize("depth", [1, 2, 3, 10])
def test_submax_of_values_is_the_equation(depth, seed):
    value = np.random.default_rng(seed).normal(size=(7, 5))
    expected = [by_hand(row.tolist(), depth) for row in value]
    np.testing.assert_allclose(submax_of(value, depth), expected, atol=1e-12)
    contrasts = value - value.mean(axis=1, keepdims=True)
    mixed = mean_submax_of(contrasts, depth)
    np.testing.assert_allclose(mixed, np.mean(expected, axis=0), atol=1e-12)


@pytest.mark.parametrize("depth", [1, 3, 5, 30])
def test_the_means_of_several_tables_are_those_of_each(depth, seed):
    value = np.random.default_rng(seed).normal(size=(2, 6, 7, 5))
    # Two actions are equally good, and stay so in every step.
    value[0, ..., 0] = value[0, ..., 3] = value[0].max(axis=-1)
    found, contrasts = submax_of(value, depth), value - value.mean(axis=-1, keepdims=True)
    np.testing.assert_allclose(found[0, ..., 0], found[0, ..., 3], rtol=1e-9)
    expected = found.mean(axis=-2)
    np.testing.assert_allclose(mean_submax_of(contrasts, depth), expected, atol=1e-12)
    assert mean_submax_of(contrasts[:, :0], depth).shape == (2, 0, 5)
    contrasts[1, 2, 3] = expected[1, 2] = np.nan
    np.testing.assert_allclose(mean_submax_of(contrasts, depth), expected, atol=1e-12)


def test_equal_values_are_uniform_in_both_forms():
    value = np.array([[0.3, 0.3, 0.3], [0.0, 1.0, 0.5]])
    expected = np.array([[1 / 3, 1 / 3, 1 / 3], [0.0, 1.0, 0.0]])
    np.testing.assert_allclose(submax_of(value, 2), expected)
    contrasts = np.array([[0.0, 0.0, 0.0], [-0.5, 0.5, 0.0]])
    np.testing.assert_allclose(mean_submax_of(contrasts, 2), expected.mean(axis=0))


def test_a_policy_is_the_mean_over_the_draws_of_the_belief(seed):
    rng = np.random.default_rng(seed)
    context, action = rng.normal(size=(200, 4)), rng.integers(3, size=200)
    reward = rng.random(200) < 0.2 + 0.6 * (context[:, 0] > action - 1)
    state = taught(SMALL, Problem(Arms(3), 4), context, action, reward, seed)
    asked = rng.normal(size=(1, 6, 4))
    drawn = SMALL.estimator.belief(state, asked).drawn_rewards()[0]
    expected = [np.mean([by_hand(draw, 2) for draw in row], axis=0) for row in drawn.tolist()]
    np.testing.assert_allclose(SMALL.probabilities(state, asked)[0], expected, atol=1e-9)
    alone = [SMALL.probabilities(state, asked[:, one : one + 1])[0, 0] for one in range(6)]
    np.testing.assert_allclose(alone, expected, atol=1e-9)


def test_it_learns_which_arm_is_right_in_which_context(seed):
    rng = np.random.default_rng(seed)
    context, action = rng.normal(size=(600, 2)), rng.integers(3, size=600)
    # Not linear: the right arm depends on the distance from the centre.
    right = np.digitize((context**2).sum(axis=1), [0.7, 2.5])
    state = taught(SMALL, Problem(Arms(3), 2), context, action, action == right, seed)
    asked = np.array([[[0.0, 0.1], [1.2, 0.0], [0.0, -2.2]]])
    chosen = SMALL.probabilities(state, asked)[0]
    assert chosen.argmax(axis=1).tolist() == [0, 1, 2]
    assert chosen.max(axis=1).min() > 0.8


def test_a_state_that_was_stored_learns_no_more(seed):
    rng = np.random.default_rng(seed)
    context, action = rng.normal(size=(300, 3)), rng.integers(3, size=300)
    state = taught(SMALL, Problem(Arms(3), 3), context, action, action == 1, seed)
    restored, _ = read_state(state_bytes(state, {}))
    with raises_code("invalid-input"):
        SMALL.update(restored, rows(context, action, action == 1), rng)


BAD_CONTEXTS = {
    "a constant number": lambda rng, n: np.c_[rng.normal(size=n), np.full(n, 7.0)],
    "far from zero": lambda rng, n: 1e12 + rng.normal(size=(n, 2)),
    "all equal": lambda rng, n: np.ones((n, 4)),
    "one row far off": lambda rng, n: np.r_[rng.normal(size=(n - 1, 2)), [[1e15, -1e15]]],
}


@pytest.mark.parametrize("what", BAD_CONTEXTS)
def test_awkward_contexts_are_decided_in(what, seed):
    rng = np.random.default_rng(seed)
    context = BAD_CONTEXTS[what](rng, 90)
    action = rng.integers(3, size=90)
    state = taught(SMALL, Problem(Arms(3), context.shape[1]), context, action, action == 2, seed)
    found = SMALL.probabilities(state, context[None, :5])
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found.sum(axis=-1), 1.0)
    assert found[0, :, 2].min() > 0.5


@pytest.mark.parametrize(("size", "offset"), [(1e-6, 0.0), (1e6, 1e6)])
def test_decisions_do_not_depend_on_the_unit_of_the_reward(size, offset, seed):
    rng = np.random.default_rng(seed)
    context, action = rng.normal(size=(200, 2)), rng.integers(3, size=200)
    plain = context[:, 0] * (action - 1) + 0.1 * rng.normal(size=200)
    problem = Problem(Arms(3), 2, Continuous())
    asked = rng.normal(size=(1, 8, 2))
    found = [
        SMALL.probabilities(taught(SMALL, problem, context, action, reward, seed), asked)
        for reward in (plain, offset * max(size, 1e-3) + size * plain)
    ]
    np.testing.assert_allclose(found[1], found[0], atol=1e-4)


@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_equal_rewards_say_nothing(reward, seed):
    rng = np.random.default_rng(seed)
    context, action = rng.normal(size=(50, 2)), rng.integers(3, size=50)
    state = taught(SMALL, Problem(Arms(3), 2), context, action, np.full(50, reward), seed)
    assert np.all(SMALL.probabilities(state, context[None, :4]) == 1 / 3)


def test_contexts_that_are_not_finite_are_refused():
    problem = Problem(Arms(3), 2)
    state = SMALL.init(problem, 1, np.random.default_rng(0))
    with raises_code("invalid-input"):
        SMALL.act(state, np.array([[[0.0, np.nan]]]), np.random.default_rng(0))


def test_equal_rewards_after_others_have_faded_do_no_harm(seed):
    policy = PosteriorSubMax(BayesianFeatures(features=24, memory=Memory(discount=0.9), rows=50))
    rng = np.random.default_rng(seed)
    context, action = rng.normal(size=(100, 2)), rng.integers(3, size=100)
    state = taught(policy, Problem(Arms(3), 2), context, action, action == 0, seed)
    for _ in range(4):
        state = policy.update(state, rows(context, action, np.ones(100)), rng)
    assert np.isfinite(policy.probabilities(state, context[None])).all()


def test_sure_rewards_are_not_unlearned(seed):
    """In separate clusters the right arm always pays: what was learned must not be lost again."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(6, size=600)
    points = 8 * np.vstack([np.eye(3, 4), -np.eye(3, 4)])[labels] + rng.normal(size=(600, 4))
    trace = submax.simulate(
        submax.Classification.of(points, labels),
        PosteriorSubMax(BayesianFeatures(features=48)),
        observations=2000,
        replicas=2,
        delay=BatchedRewards(50),
        seed=seed,
        points=None,
    )
    mistakes = trace.accumulated_regret
    assert (mistakes[:, -1] - mistakes[:, 999]).max() <= 2
    assert mistakes[:, -1].max() <= 120
