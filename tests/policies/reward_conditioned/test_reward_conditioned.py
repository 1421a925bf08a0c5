import numpy as np
import pytest
from refusals import raises_code

from submax import Arms, Feedback, Problem, Slots, Training
from submax.estimators import CVAE, Counting
from submax.policies import RewardConditioned
from submax.policies.reward_conditioned import ExhaustedWarning
from submax.strategies import Clipped, Optimistic, Optimized, SubMax
from submax.strategies.weighted import bounds
from submax.testing.assertions import SMALLEST_P_VALUE, goodness_of_fit
from submax.testing.problems import some_contexts, some_feedback


def taught(policy, problem, feedback, seed):
    rng = np.random.default_rng(seed)
    return policy.update(policy.init(problem, feedback.reward.shape[0], rng), feedback, rng)


def test_submax_with_add_one_from_the_raw_observations(seed):
    problem = Problem(Arms(3))
    feedback = some_feedback(problem, 5, 40, seed)
    policy = RewardConditioned(Counting(1.0), SubMax())
    state = taught(policy, problem, feedback, seed)
    found = policy.probabilities(state, np.zeros((5, 1, 0)))[:, 0]
    for replica in range(5):
        arm, reward = feedback.action[replica, :, 0], feedback.reward[replica]
        good, bad = ([1 + np.sum(arm[reward == r] == a) for a in range(3)] for r in (1, 0))
        gain = np.maximum(np.array(good) / sum(good) - np.array(bad) / sum(bad), 0)
        expected = gain / gain.sum() if gain.sum() > 1e-12 else np.full(3, 1 / 3)
        assert np.allclose(found[replica], expected)


def test_optimized_without_propensities_says_what_is_missing(seed):
    problem = Problem(Arms(3))
    feedback = some_feedback(problem, 1, 20, seed)._replace(log_prob=None, reward=np.ones((1, 20)))
    policy = RewardConditioned(Counting(), Optimized())
    state = taught(policy, problem, feedback, seed)
    with raises_code("invalid-input"):
        policy.act(state, np.zeros((1, 1, 0)), np.random.default_rng(seed))


# Wide layers and small steps: in none of 600 trainings were all ReLU units of a layer dead at the
# end. With 4 units and steps of 0.05 they were in a fifth of the trainings, and a dead layer makes
# all reward levels equal, so that there is nothing to test.
NETWORK = CVAE(
    hidden=32, latent=2, draws=3, training=Training(steps=150, batch=32, learning_rate=0.01)
)
CONTEXTUAL = Problem(Slots((2, 3, 4)), context_width=2)
trains = pytest.mark.xdist_group("CVAE")


def telling_feedback(problem, replicas, rows, seed):
    """Uniform actions, paid more often the lower their choices and the context."""
    rng = np.random.default_rng((seed, 3))
    feedback = some_feedback(problem, replicas, rows, seed)
    share = feedback.action.mean(axis=-1) / np.mean(np.array(problem.space.choices) - 1)
    chance = 0.9 - 0.8 * share - 0.1 * np.tanh(feedback.context.sum(axis=-1))
    paid = rng.random((replicas, rows)) < chance
    uniform = np.full((replicas, rows), -np.log(float(problem.space.size)))
    return feedback._replace(reward=paid.astype(np.float64), log_prob=uniform)


@pytest.fixture(scope="module")
def belief(seed):
    """Two replicas of a small network: the first learned, the second has no feedback."""
    feedback = telling_feedback(CONTEXTUAL, 2, 300, seed)
    feedback.weight[1] = 0
    policy = RewardConditioned(NETWORK, Optimized())
    return policy, taught(policy, CONTEXTUAL, feedback, seed)


@trains
@pytest.mark.parametrize("strategy", [SubMax(), Optimistic(), Clipped(4.0)], ids=repr)
def test_draws_by_rejection_follow_the_listed_probabilities(strategy, belief, seed):
    _, state = belief
    rejecting = RewardConditioned(NETWORK, strategy, max_enumerated_actions=1)
    context = some_contexts(CONTEXTUAL, 2, 3, seed)
    listed = RewardConditioned(NETWORK, strategy).probabilities(state, context)
    decision = rejecting.act(
        state, np.repeat(context, 3000, axis=1), np.random.default_rng((seed, 4))
    )
    assert decision.log_prob is None
    index = CONTEXTUAL.space.index(decision.action).reshape(2, 3, 3000)
    for replica, row in np.ndindex(2, 3):
        fit = goodness_of_fit(index[replica, row], listed[replica, row])
        assert fit > SMALLEST_P_VALUE
    assert np.allclose(listed[1], 1 / 24)
    assert not np.allclose(listed[0], 1 / 24, atol=0.01)


@trains
@pytest.mark.parametrize("strategy", [SubMax(), Optimistic(), Clipped(4.0)], ids=repr)
def test_the_estimated_log_probability_is_within_its_error(strategy, belief, seed):
    _, state = belief
    policy = RewardConditioned(NETWORK, strategy)
    context = some_contexts(CONTEXTUAL, 2, 1, seed)
    contexts = np.repeat(context, 24, axis=1)
    actions = np.broadcast_to(CONTEXTUAL.space.listing(), (2, 24, 3))
    exact = policy.log_prob(state, contexts, actions)
    estimated = policy.density(state, contexts, actions)
    likely = exact[0] > np.log(1e-3)
    assert likely.any()
    # Each of the 24 rows has proposals of its own.
    difference = np.abs(exact[0, likely] - estimated.log_prob[0, likely])
    assert np.all(difference <= 7 * estimated.error[0, likely] + 1e-4)
    assert np.array_equal(np.isneginf(exact), np.isneginf(estimated.log_prob))
    assert np.array_equal(estimated.known, np.repeat([[True], [False]], 24, axis=1))
    assert np.array_equal(estimated.log_prob[1], np.full(24, -np.log(24.0)))
    assert not estimated.error[1].any()


@trains
@pytest.mark.parametrize("values", [(0.1, 0.2), (0.2, 0.1)])
def test_optimized_goes_to_the_better_bound_of_each_context_and_clips_nothing(values, belief, seed):
    policy, state = belief
    context = some_contexts(CONTEXTUAL, 2, 20, seed)
    low, high = np.moveaxis(NETWORK.belief(state.params, context).prob_of_all()[0], 1, 0)
    lowest, highest = bounds(low, high)
    weight = (highest if values[1] > values[0] else lowest)[:, None]
    mixed = (1 - weight) * low + weight * high
    assert np.allclose(mixed.min(axis=-1), 0, atol=1e-9)
    assert np.ptp(weight) > 0
    found = policy.probabilities(state._replace(values=np.tile(values, (2, 1))), context)
    np.testing.assert_allclose(found[0], mixed, atol=1e-9)


@trains
def test_a_million_million_joint_actions(seed):
    problem = Problem(Slots((100,) * 6))
    policy = RewardConditioned(NETWORK, SubMax())
    rng = np.random.default_rng(seed)
    state = policy.init(problem, 2, rng)
    context = np.zeros((2, 50, 0))
    first = policy.act(state, context, rng)
    assert problem.space.contains(first.action)
    assert np.allclose(policy.log_prob(state, context, first.action), -12 * np.log(10))
    state = policy.update(state, telling_feedback(problem, 2, 300, seed), rng)
    decision = policy.act(state, context, rng)
    assert problem.space.contains(decision.action)
    log_prob = policy.log_prob(state, context, decision.action)
    assert np.isfinite(log_prob).all()
    assert log_prob.mean() > -12 * np.log(10)


def test_levels_that_are_equal_exhaust_the_proposals(seed):
    problem = Problem(Arms(4))
    arm = np.tile(np.arange(4), 2)[None, :, None]
    reward = np.repeat([0.0, 1.0], 4)[None]
    feedback = Feedback(np.zeros((1, 8, 0)), arm, reward, None, np.ones((1, 8)))
    policy = RewardConditioned(Counting(), SubMax(), max_enumerated_actions=1)
    state = taught(policy, problem, feedback, seed)
    context = np.zeros((1, 2000, 0))
    with pytest.warns(ExhaustedWarning) as told:
        action = policy.act(state, context, np.random.default_rng(seed)).action
    assert sum(one.message.decisions for one in told) == 2000
    assert goodness_of_fit(action, np.full(4, 0.25)) > SMALLEST_P_VALUE
    assert np.allclose(policy.log_prob(state, context, action), np.log(0.25))
    estimated = policy.density(state, context, action)
    assert np.allclose(estimated.log_prob, np.log(0.25))
    assert not estimated.error.any()
    assert not estimated.known.any()
