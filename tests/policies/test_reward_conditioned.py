from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from observations import listed, observed, taught
from refusals import raises_code

from submax import (
    Arms,
    Continuous,
    Counts,
    Discrete,
    Problem,
    Slots,
    StrategyRequirements,
    Training,
)
from submax.core.errors import FallbackWarning, counted_fallbacks, fall_back
from submax.estimators import CVAE, Counting, Softmax
from submax.policies import RewardConditioned, SlotBySlot
from submax.policies.reward_conditioned import DecisionCounts, ExhaustedWarning
from submax.strategies import Advantage, Clipped, Iterated, Optimistic, Optimized, SubMax, Tracking
from submax.strategies.weighted import bounds
from submax.testing.assertions import SMALLEST_P_VALUE, goodness_of_fit
from submax.testing.problems import some_contexts, some_feedback


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
    for place in np.ndindex(2, 3):
        assert goodness_of_fit(index[place], listed[place]) > SMALLEST_P_VALUE
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
    feedback = observed([[0, 1, 2, 3] * 2], [[0] * 4 + [1] * 4])
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


# Slot by slot

BRIEF = Training(steps=40, batch=32, learning_rate=0.02)
SOFTMAX = Softmax(hidden=8, training=BRIEF)
SMALL_NETWORK = CVAE(hidden=8, latent=2, draws=3, training=BRIEF)
BY_SOFTMAX = pytest.param(SOFTMAX, Tracking(0.3), marks=pytest.mark.xdist_group("Softmax"))
BY_CVAE = pytest.param(SMALL_NETWORK, SubMax(), marks=pytest.mark.xdist_group("CVAE"))


def by_hand(arm, reward, size):
    """SubMax with add-one of one slot, from the raw rows of a replica."""
    good, bad = (
        np.array([1 + np.sum(arm[reward == r] == choice) for choice in range(size)]) for r in (1, 0)
    )
    gain = np.maximum(good / good.sum() - bad / bad.sum(), 0)
    return gain / gain.sum() if gain.sum() > 1e-12 else np.full(size, 1 / size)


@pytest.mark.parametrize("sizes", [(3,), (2, 3)])
def test_submax_with_add_one_from_the_raw_observations(sizes, seed):
    problem = Problem(Slots(sizes))
    feedback = some_feedback(problem, 5, 60, seed)
    policy = SlotBySlot(Counting(1.0), SubMax())
    found = listed(policy, taught(policy, problem, feedback, seed), 5)
    for replica in range(5):
        expected = np.ones(1)
        for slot, size in enumerate(sizes):
            of_slot = by_hand(feedback.action[replica, :, slot], feedback.reward[replica], size)
            expected = np.outer(expected, of_slot).ravel()
        np.testing.assert_allclose(found[replica], expected, atol=1e-9)


@pytest.mark.parametrize(
    ("estimator", "strategy"),
    [
        *((Counting(), strategy) for strategy in (SubMax(), Optimized(), Iterated(2), Tracking())),
        (Counting("fitted"), Tracking()),
        BY_SOFTMAX,
        BY_CVAE,
    ],
    ids=lambda one: type(one).__name__,
)
def test_with_one_slot_it_is_the_policy_that_lists(estimator, strategy, seed):
    problem = Problem(Arms(5), context_width=3)
    feedback = some_feedback(problem, 2, 60, seed)
    context = some_contexts(problem, 2, 4, seed)
    found, expected = (
        policy.probabilities(taught(policy, problem, feedback, seed), context)
        for policy in (SlotBySlot(estimator, strategy), RewardConditioned(estimator, strategy))
    )
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert np.ptp(found, axis=-1).min() > 0


@pytest.mark.xdist_group("CVAE")
@pytest.mark.parametrize("estimator", [SOFTMAX, SMALL_NETWORK], ids=lambda one: type(one).__name__)
def test_networks_say_of_choices_what_they_say_of_joint_actions(estimator, seed):
    space = Slots((2, 3, 4))
    problem, rng = Problem(space, context_width=2), np.random.default_rng(seed)
    params = estimator.init(problem, 2, rng)
    params = estimator.fit(params, some_feedback(problem, 2, 60, seed), rng)
    context = some_contexts(problem, 2, 5, seed)
    listed = estimator.belief(params, context).prob(space.listing()[None, None])
    for slot, found in enumerate(estimator.belief(params, context).prob_of_choices()):
        for choice in range(space.sizes[slot]):
            with_it = space.listing()[:, slot] == choice
            expected = listed[..., with_it].sum(axis=-1)
            np.testing.assert_allclose(found[..., choice], expected, rtol=1e-6)


@pytest.mark.parametrize("smoothing", [1.0, "fitted"])
def test_evidence_is_what_was_counted_of_the_slot(smoothing, seed):
    problem, estimator = Problem(Slots((2, 3))), Counting(smoothing)
    feedback, rng = some_feedback(problem, 2, 60, seed), np.random.default_rng(seed)
    params = estimator.fit(estimator.init(problem, 2, rng), feedback, rng)
    context = np.zeros((2, 1, 0))
    found = estimator.belief(params, context).observation_weights_by_slot()
    for slot, size in enumerate((2, 3)):
        # As if the slot were a problem of its own.
        alone = Problem(Arms(size))
        part = feedback._replace(action=feedback.action[..., slot, None])
        own = estimator.fit(estimator.init(alone, 2, rng), part, rng)
        np.testing.assert_allclose(
            found[slot], estimator.belief(own, context).observation_weights(), rtol=1e-5
        )


def test_an_action_is_expected_to_earn_its_mean_reward(seed):
    rng, problem = np.random.default_rng(seed), Problem(Arms(4), scale=Discrete((0.0, 1.0, 4.0)))
    arm = np.arange(400)[None] % 3
    reward = rng.choice([0.0, 1.0, 4.0], size=arm.shape)
    policy = RewardConditioned(Counting(smoothing=0.0))
    state = taught(policy, problem, observed(arm, reward, log_prob=-1.0))
    found = policy.expected_rewards(state, np.zeros((1, 1, 0)))[0, 0]
    assert found[:3] == pytest.approx([reward[arm == one].mean() for one in range(3)])


# Unlisted

SCALES = [
    *(Continuous(), Continuous(quantiles=(0.0, 1.0), asked=4, bin_edges=3)),
    *(Counts(), Counts(quantiles=(0.25, 0.75), asked=5, bin_edges=7)),
    Discrete((0.0, 1.0, 2.0)),
]


@pytest.mark.parametrize("scale", SCALES, ids=repr)
@pytest.mark.parametrize("max_enumerated_actions", [1, 4096])
@pytest.mark.parametrize("strategy", [SubMax(), Advantage(), Clipped()], ids=repr)
def test_where_all_rewards_are_equal_choice_is_uniform(
    strategy, max_enumerated_actions, scale, seed
):
    rng = np.random.default_rng(seed)
    policy = RewardConditioned(Counting(), strategy, max_enumerated_actions)
    equal = observed(rng.integers(3, size=(2, 40)), np.ones((2, 40)), log_prob=-np.log(3))
    state = taught(policy, Problem(Arms(3), scale=scale), equal, seed)
    levels = policy.estimator.belief(state.params, np.zeros((2, 1, 0))).levels()
    context = np.zeros((2, 600, 0))
    assert np.all(levels == 1.0) == scale.moves
    np.testing.assert_allclose(listed(policy, state, 2), 1 / 3)
    with counted_fallbacks() as counts:
        action = policy.act(state, context, rng).action
    assert counts == []
    np.testing.assert_allclose(policy.log_prob(state, context, action), -np.log(3))
    for replica in range(2):
        assert goodness_of_fit(action[replica, :, 0], np.full(3, 1 / 3)) > SMALLEST_P_VALUE


class NeverSolved(Optimistic):
    """As a linear program that has no solution."""

    facts = StrategyRequirements(needs_listing=True)

    def weights(self, table):
        fall_back(FallbackWarning, "no solution", int(np.prod(table.prior.shape[:-1])))
        return Optimistic.weights(self, table)


@pytest.mark.parametrize("width", [0, 2])
def test_every_decision_of_an_unsolved_program_counts(width, seed):
    rng = np.random.default_rng(seed)
    policy = RewardConditioned(Counting(), NeverSolved())
    state = policy.init(Problem(Arms(3), context_width=width), 2, rng)
    with counted_fallbacks() as counts:
        policy.act(state, np.zeros((2, 70, width)), rng)
    assert sum(counts) == 2 * 70


# Decision counts


receives = st.integers(0, 12)


@given(steps=st.lists(st.tuples(st.integers(0, 9), receives, receives), max_size=20))
def test_it_counts_as_a_queue_of_each_replica_does(steps):
    counts = DecisionCounts.none(2)
    queues, received, batch = (deque(), deque()), [0, 0], [1, 1]
    for decide, *receive in steps:
        weight = np.zeros((2, 12))
        for replica, (queue, rows) in enumerate(zip(queues, receive, strict=True)):
            queue.extend(range(decide))
            for _ in range(min(rows, len(queue))):
                queue.popleft()
            weight[replica, :rows] = 0.5
            received[replica] += rows
            batch[replica] = rows + len(queue) if rows else batch[replica]
        counts = counts._replace(waiting=counts.waiting + decide)
        counts = counts.after_feedback(observed(np.zeros((2, 12), int), weight, weight=weight))
        waiting = [len(queue) for queue in queues]
        assert [part.tolist() for part in counts] == [received, waiting, batch]
