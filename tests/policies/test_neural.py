"""Decisions of value networks, recomputed one action at a time."""

from dataclasses import replace

import numpy as np
import pytest
from observations import observed, taught
from scipy.special import expit

from submax import Problem, Slots, Training
from submax.estimators import Counting
from submax.policies import (
    ActorCritic,
    BayesReparameterized,
    ClimbingEpsilonGreedy,
    DropoutThompson,
    LinearThompson,
    LinUCB,
    NeuralEpsilonGreedy,
    NeuralThompson,
    NeuralUCB,
    PolicyGradient,
    SampleAverageSampling,
    SampleAverageUCB,
    VarianceNetworkUCB,
)
from submax.policies.regressions import LinearPolicy
from submax.research.rivals.climbing import Climbs
from submax.research.rivals.neural import largest_normal
from submax.research.rivals.value_networks import ValueBelief, ValueNetwork
from submax.strategies import SubMax
from submax.testing.assertions import SMALLEST_P_VALUE, goodness_of_fit
from submax.testing.problems import some_contexts, some_feedback

pytestmark = pytest.mark.xdist_group("ValueBelief")


def test_the_highest_value_has_all_but_epsilon(learned, training, problem, logits, seed):
    policy = NeuralEpsilonGreedy(0.3, hidden=8, dropout=0.0, training=training)
    state, context = learned(policy), some_contexts(problem, 4, 6, seed)
    best = logits(state.network, context).argmax(axis=-1)
    expected = 0.1 + 0.7 * (best[..., None] == np.arange(3))
    np.testing.assert_allclose(policy.probabilities(state, context), expected)


def test_the_probability_is_that_of_drawn_values(learned, training, problem, seed):
    policy = NeuralThompson(2.0, hidden=8, training=training)
    state, context = learned(policy), some_contexts(problem, 4, 1, seed)
    probabilities = policy.probabilities(state, context)
    logit, deviation = policy.scores(state, context)
    noise = np.random.default_rng((seed, 10)).normal(size=(4, 3000, 3))
    drawn = (logit + 2.0 * deviation * noise).argmax(axis=-1)
    for replica in range(4):
        fit = goodness_of_fit(drawn[replica], probabilities[replica, 0])
        assert fit > SMALLEST_P_VALUE


def test_the_probability_is_the_share_of_masks(learned, training, problem, logits, seed):
    policy = DropoutThompson(0.3, masks=40, hidden=8, training=training)
    state, context = learned(policy), some_contexts(problem, 4, 3, seed)
    # 4 × 40 × 8 units, each kept with chance 0.7.
    first, second = state.extra
    assert abs(np.mean(first > 0) - 0.7) < 6 * np.sqrt(0.21 / first.size)
    expected = np.zeros((4, 3, 3))
    for masks in zip(*np.swapaxes([first, second], 1, 2), strict=True):
        values = logits(state.network, context, *masks)
        best = np.isclose(values, values.max(axis=-1, keepdims=True), rtol=1e-6, atol=1e-6)
        expected += best / best.sum(axis=-1, keepdims=True) / 40
    np.testing.assert_allclose(policy.probabilities(state, context), expected, atol=1e-8)


def test_conditioned_probabilities_follow_by_bayes_rule(learned, training, problem, logits, seed):
    """Recompute p(r | a, c) p(a | c), normalized over actions, one action at a time."""
    policy = BayesReparameterized(estimator=Counting(), hidden=8, training=training)
    state = learned(policy)
    context = some_contexts(problem, 4, 5, seed)
    table = policy.table(state, context)
    counted = policy.estimator.belief(state.behaviour, context).prob_of_all()[:, :, 0]
    action = state.rewards.buffer.action[..., 0]
    times = np.stack([(action == arm).sum(axis=1) for arm in range(3)], axis=1)
    logged = policy.estimator.smoothing + times
    np.testing.assert_allclose(counted[:, 0], logged / logged.sum(axis=1, keepdims=True))
    paid = expit(values := logits(state.rewards.network, context))
    joint = np.stack([1 - paid, paid], axis=2) * counted[:, :, None]
    expected = joint / joint.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(table.probabilities, expected, rtol=1e-4)
    np.testing.assert_allclose(table.prior, joint.sum(axis=-1), rtol=1e-4)
    among = policy.table(policy.restricted(state, ((0, 2),)), context).probabilities
    kept = table.probabilities[..., [0, 2]]
    # The relative error of a probability is the rounding error of its logit, a float32.
    rounding = 8 * np.finfo(np.float32).eps * max(np.abs(values).max(), 1.0)
    np.testing.assert_allclose(among, kept / kept.sum(axis=-1, keepdims=True), rtol=rounding)


# Value climb


PROBLEM = Problem(Slots((2, 3, 4)), context_width=2)
REPLICAS, HIDDEN = 2, 8
TRAINING = Training(steps=20, batch=16, learning_rate=0.02)


def random_belief(seed):
    """A value network with random weights in all layers."""
    rng = np.random.default_rng(seed)
    silent = ValueNetwork.silent(REPLICAS, 9, 2, HIDDEN)
    network = ValueNetwork(*(rng.normal(size=part.shape).astype(np.float32) for part in silent))
    return ValueBelief.empty(PROBLEM, REPLICAS, HIDDEN)._replace(network=network)


def better_neighbours(belief, context, action, *masks):
    """How many actions that differ in one slot have a higher value."""
    listed = belief.logits(context, *masks)
    count = 0
    for replica, row in np.ndindex(action.shape[:2]):
        own = listed[replica, row, PROBLEM.space.index(action[replica, row])]
        for slot, size in enumerate(PROBLEM.space.choices):
            for choice in range(size):
                other = action[replica, row].copy()
                other[slot] = choice
                count += listed[replica, row, PROBLEM.space.index(other)] > own + 1e-6
    return count


def test_no_change_of_one_slot_improves_the_end_of_a_climb(seed):
    belief, rng = random_belief(seed), np.random.default_rng(seed)
    policy, context = ClimbingEpsilonGreedy(sweeps=50), rng.normal(size=(REPLICAS, 30, 2))
    belief = belief._replace(extra=Climbs(PROBLEM.space.uniform((REPLICAS, 3), rng)))
    masks = tuple((rng.random((2, REPLICAS, 30, HIDDEN)) < 0.8).astype(np.float32) / 0.8)
    for mask in ((), masks):
        end = policy.climbed(belief, context, *mask)
        assert better_neighbours(belief, context, end, *mask) == 0


def test_epsilon_greedy_explores_with_its_probability(seed):
    rng = np.random.default_rng(seed)
    policy = ClimbingEpsilonGreedy(0.3, hidden=HIDDEN, training=TRAINING)
    action = PROBLEM.space.uniform((REPLICAS, 60), rng)
    # The last choice of the last slot is paid.
    feedback = observed(action, action[..., 2] == 3, rng.normal(size=(REPLICAS, 60, 2)))
    state = policy.update(policy.init(PROBLEM, REPLICAS, rng), feedback, rng)
    context = np.repeat(rng.normal(size=(REPLICAS, 1, 2)), 2000, axis=1)
    action, log_prob = policy.act(state, context, rng)
    greedy = log_prob == log_prob.max()
    assert np.allclose(np.exp(log_prob[greedy]), 0.7 + 0.3 / 24)
    assert np.allclose(np.exp(log_prob[~greedy]), 0.3 / 24)
    share = greedy.mean()
    error = np.sqrt(0.7125 * 0.2875 / greedy.size)
    assert abs(share - (0.7 + 0.3 / 24)) < 6 * error
    assert np.array_equal(policy.log_prob(state, context, action), log_prob)


# Value networks with an estimate of their own error


@pytest.fixture(scope="module")
def before(learned, training):
    return learned(SampleAverageUCB(hidden=8, training=training))


@pytest.fixture(scope="module")
def state(before, problem, training, seed):
    feedback = some_feedback(problem, 4, 9, seed)
    feedback.weight[2, 4:] = 0.0
    return SampleAverageUCB(hidden=8, training=training).update(
        before, feedback, np.random.default_rng(seed)
    )


def test_squares_are_those_of_the_network_before_the_update(before, state, problem, logits, seed):
    """Recompute S_a and n_a row by row, with the network from before the rows were learned."""
    feedback = some_feedback(problem, 4, 9, seed)
    squares, counts = before.extra.squares.copy(), before.extra.counts.copy()
    predicted = expit(logits(before.network, feedback.context))
    for replica, row in np.ndindex(4, 4):
        arm = feedback.action[replica, row, 0]
        squares[replica, arm] += (feedback.reward[replica, row] - predicted[replica, row, arm]) ** 2
        counts[replica, arm] += 1
    np.testing.assert_allclose(state.extra.counts[2], counts[2])
    np.testing.assert_allclose(state.extra.squares[2], squares[2], rtol=1e-5)
    assert np.all(state.extra.counts.sum(axis=1) == np.where(np.arange(4) == 2, 404, 409))


@pytest.mark.parametrize("width", [0.0, 1.0, 50.0])
def test_the_highest_bound_of_sample_averages_is_taken(width, state, problem, logits, seed):
    context = some_contexts(problem, 4, 20, seed)
    found = SampleAverageUCB(width=width, hidden=8).probabilities(state, context)
    squares, count = state.extra.squares, state.extra.counts
    variance, total = squares / count, count.sum(axis=1, keepdims=True)
    reach = width * np.sqrt(variance * np.log(total) / count)
    best = (expit(logits(state.network, context)) + reach[:, None]).argmax(axis=-1)
    np.testing.assert_allclose(np.take_along_axis(found, best[..., None], axis=-1), 1.0)


def test_sampling_is_the_chance_that_a_normal_draw_is_the_largest(state, problem, seed):
    context = some_contexts(problem, 4, 2, seed)
    found = SampleAverageSampling(hidden=8, scale=3.0).probabilities(state, context)
    mean, deviation = state.values(context), 3.0 * np.sqrt(state.extra.squares) / state.extra.counts
    expected = largest_normal(mean, np.broadcast_to(deviation[:, None], mean.shape))
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.fixture(scope="module")
def noisy(problem, training, seed):
    """Return a belief about arms that pay by a coin if the first number of the context is 1.

    If the first number of the context is −1, all arms pay nothing.
    """
    rng = np.random.default_rng((seed, 7))
    context = rng.choice([-1.0, 1.0], size=(4, 600, 2))
    action = rng.integers(3, size=(4, 600, 1))
    reward = ((context[..., 0] > 0) & (rng.random((4, 600)) < 0.5)).astype(float)
    policy = VarianceNetworkUCB(hidden=8, training=training)
    return taught(policy, problem, observed(action, reward, context), seed)


def test_the_second_network_predicts_the_variance(noisy):
    """The variance of a coin is 1/4, that of a constant is 0."""
    context = np.array([[[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]]).repeat(4, axis=0)
    deviation = VarianceNetworkUCB().scores(noisy, context)[1]
    # About 50 rows in each of 12 cells have a standard error of the variance below 0.01, and the
    # last steps of training add as much; 0.5 and 0 are the truth.
    assert np.abs(deviation[:, :2] - 0.5).max() < 0.15
    assert deviation[:, 2:].max() < 0.3


@pytest.mark.parametrize("width", [0.0, 0.3, 20.0])
def test_the_highest_bound_with_a_predicted_variance_is_taken(width, noisy, problem, logits, seed):
    context = some_contexts(problem, 4, 20, seed)
    found = VarianceNetworkUCB(width=width, hidden=8).probabilities(noisy, context)
    networks = noisy.network, noisy.extra.network
    mean, variance = (expit(logits(one, context).astype(float)) for one in networks)
    bounds, taken = mean + width * np.sqrt(variance), found.argmax(axis=-1)
    # Bounds that differ by rounding may be ordered either way.
    reached = np.take_along_axis(bounds, taken[..., None], axis=-1)[..., 0]
    np.testing.assert_allclose(reached, bounds.max(axis=-1), rtol=0, atol=1e-5)


# Policies by context: uniform before the first feedback, and better afterwards


LEARNING = [
    *(one() for one in (ActorCritic, NeuralThompson, NeuralUCB, PolicyGradient)),
    *(one() for one in (SampleAverageSampling, SampleAverageUCB, VarianceNetworkUCB)),
    BayesReparameterized(strategy=SubMax()),
    DropoutThompson(dropout=0.3, masks=40),
    NeuralEpsilonGreedy(epsilon=0.0, dropout=0.0),
    LinearThompson(),
    LinUCB(),
]


@pytest.mark.parametrize("policy", LEARNING, ids=lambda one: type(one).__name__)
def test_it_learns_which_arm_suits_which_context(policy, learned, training, problem, seed):
    if not isinstance(policy, LinearPolicy):
        small = {"hidden": 8, "training": training}
        if isinstance(policy, BayesReparameterized):
            small["estimator"] = replace(policy.estimator, **small)
        policy = replace(policy, **small)
    fresh, rng = policy.init(problem, 4, np.random.default_rng(seed)), np.random.default_rng(seed)
    context = rng.choice([-1.0, 1.0], size=(4, 500, 2))
    assert np.allclose(policy.probabilities(fresh, context), 1 / 3)
    action = policy.act(learned(policy), context, rng).action[..., 0]
    # Uniform choices earn a third.
    least = 0.5 if isinstance(policy, DropoutThompson) else 0.7
    assert np.mean(action == (context[..., 0] > 0)) > least
