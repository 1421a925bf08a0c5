"""Policies conditioned on advantages, on slot responses, and by Bayes’ rule."""

import numpy as np
import pytest

from submax import Arms, Continuous, Discrete, Problem, Slots, Training
from submax.core.policy import restricted_state
from submax.estimators import Counting, Softmax
from submax.policies import AdvantageConditioned, BayesReparameterized, RewardConditioned, SlateCVAE
from submax.research.rivals.conditioned import BIN_EDGES, slot_responses
from submax.research.rivals.value_networks import ValueBelief
from submax.strategies import Optimistic, Tilted
from submax.testing.problems import some_contexts, some_feedback

pytestmark = pytest.mark.xdist_group("ValueBelief")

SCALE = Continuous(low=-1.0, high=1.0, quantiles=(0.0, 1.0))
BRIEF = Training(steps=6, batch=8, learning_rate=0.05)


def test_without_a_context_it_is_conditioned_on_the_reward(seed):
    """V is a constant then, and a constant that is subtracted from all rewards changes nothing."""
    rng = np.random.default_rng(seed)
    plain = RewardConditioned(Counting(), Tilted(0.3), levels=4)
    policy = AdvantageConditioned(Counting(), Tilted(0.3), levels=4, hidden=4, training=BRIEF)
    problem = Problem(Arms(5), scale=SCALE)
    feedback = some_feedback(problem, 4, 60, seed)
    # The network's scale is from 0 to 1, on which advantages are half as large.
    feedback = feedback._replace(reward=rng.uniform(-0.5, 0.5, size=feedback.reward.shape))
    expected = plain.update(plain.init(problem, 4, rng), feedback, rng)
    found = policy.update(policy.init(problem, 4, rng), feedback, rng)
    context = np.zeros((4, 1, 0))
    np.testing.assert_allclose(
        policy.probabilities(found, context), plain.probabilities(expected, context)
    )


def test_advantages_are_rewards_less_the_value_of_the_context(problem, value, seed):
    policy = AdvantageConditioned(
        Softmax(hidden=4, training=BRIEF), levels=3, hidden=4, training=BRIEF
    )
    rng = np.random.default_rng(seed)
    feedback = some_feedback(problem, 4, 10, seed)
    state = policy.update(policy.init(problem, 4, rng), feedback, rng)
    stored = state.conditioned.params.buffer
    for replica, row in np.ndindex(4, 10):
        logit = value(state.baseline.network, replica, feedback.context[replica, row], 0)
        expected = feedback.reward[replica, row] - 1 / (1 + np.exp(-logit))
        assert stored.reward[replica, row] == pytest.approx(expected, abs=1e-5)


@pytest.fixture(scope="module")
def policy(training):
    return BayesReparameterized(estimator=Counting(), hidden=8, training=training)


@pytest.fixture(scope="module")
def state(policy, learned):
    return learned(policy)


def test_conditioned_probabilities_follow_by_bayes_rule(policy, state, problem, value, seed):
    """Recompute p(r | a, c) p(a | c), normalized over actions, one action at a time."""
    context = some_contexts(problem, 4, 5, seed)
    table = policy.table(state, context)
    counted = policy.estimator.belief(state.behaviour, context).prob_of_all()[:, :, 0]
    action = state.rewards.buffer.action[..., 0]
    times = np.stack([(action == arm).sum(axis=1) for arm in range(3)], axis=1)
    logged = policy.estimator.smoothing + times
    np.testing.assert_allclose(counted[:, 0], logged / logged.sum(axis=1, keepdims=True))
    for replica, row in np.ndindex(4, 5):
        logits = [
            value(state.rewards.network, replica, context[replica, row], arm) for arm in range(3)
        ]
        paid = 1 / (1 + np.exp(-np.array(logits, dtype=float)))
        joint = np.stack([1 - paid, paid]) * counted[replica, row]
        expected = joint / joint.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(table.probabilities[replica, row], expected, rtol=1e-4)
        np.testing.assert_allclose(table.prior[replica, row], joint.sum(axis=1), rtol=1e-4)
    among = policy.table(restricted_state(policy, state, ((0, 2),)), context).probabilities
    kept = table.probabilities[..., [0, 2]]
    np.testing.assert_allclose(among, kept / kept.sum(axis=-1, keepdims=True), rtol=1e-6)


def test_submax_is_the_behaviour_times_the_positive_advantage(policy, state, problem, seed):
    """π(a) ∝ p(a | c) max(v(a, c) − Σ_b p(b | c) v(b, c), 0); see docs/explanation/theory.md."""
    context = some_contexts(problem, 4, 30, seed)
    behaviour = policy.estimator.belief(state.behaviour, context).prob_of_all()[:, :, 0]
    values = state.rewards.values(context)
    mean = (behaviour * values).sum(axis=-1, keepdims=True)
    mass = behaviour * np.maximum(values - mean, 0)
    expected = mass / mass.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(policy.probabilities(state, context), expected, atol=1e-9)


def test_several_levels_have_the_mean_that_the_network_predicts(seed):
    problem = Problem(Arms(4), scale=Discrete((-1.0, 0.0, 3.0)))
    policy = BayesReparameterized(Optimistic(), Counting(), hidden=4, training=BRIEF)
    rng = np.random.default_rng(seed)
    feedback = some_feedback(problem, 4, 40, seed)
    state = policy.update(policy.init(problem, 4, rng), feedback, rng)
    context = np.zeros((4, 1, 0))
    table = policy.table(state, context)
    behaviour = policy.estimator.belief(state.behaviour, context).prob_of_all()[:, :, 0]
    joint = table.probabilities * table.prior[..., None] / behaviour[:, :, None]
    mean = (joint * table.levels[..., None]).sum(axis=2)
    expected = -1 + 4 * state.rewards.values(context)
    np.testing.assert_allclose(mean, expected, atol=0.02)


SLATES = Problem(Slots((2, 2, 2)), context_width=2)


def test_responses_compare_a_choice_with_all_others(value, seed):
    """With every choice as an alternative, recompute the responses one value at a time."""
    rng, feedback = np.random.default_rng(seed), some_feedback(SLATES, 4, 12, seed)
    belief = ValueBelief.unlisted(SLATES, 4, 4).trained(feedback, BRIEF, 0.0, rng)
    every = np.broadcast_to(np.arange(2), (4, 12, 3, 2))
    found = slot_responses(belief, belief.buffer, every)

    def predicted(replica, row, action):
        places = np.array(action) + np.array([0, 2, 4])
        network = belief.network._replace(
            choice_weight=belief.network.choice_weight[:, places].sum(axis=1)[:, None]
        )
        logit = value(network, replica, feedback.context[replica, row], 0)
        return 1 / (1 + np.exp(-float(logit)))

    for replica, row, slot in np.ndindex(4, 12, 3):
        action = feedback.action[replica, row].tolist()
        own = predicted(replica, row, action)
        others = [
            predicted(replica, row, [*action[:slot], choice, *action[slot + 1 :]])
            for choice in range(2)
        ]
        expected = feedback.reward[replica, row] / 3 + own - np.mean(others)
        assert found[replica, row, slot] == pytest.approx(expected, abs=1e-5)


def test_known_rewards_of_slots_are_the_responses(seed):
    """The first 20 rows have a reward of each slot, the others of the joint action alone."""
    policy, rng = SlateCVAE(hidden=4, training=BRIEF), np.random.default_rng(seed)
    state = policy.init(SLATES, 4, rng)
    first, second = some_feedback(SLATES, 4, 20, seed), some_feedback(SLATES, 4, 5, seed + 1)
    known = rng.random((4, 20, 3))
    state = policy.update(state, first._replace(slot_reward=known), rng)
    state = policy.update(state, second, rng)
    columns, _ = policy.conditions(state, rng)
    mean = columns.reshape(4, 25, 3, BIN_EDGES) @ np.arange(BIN_EDGES)
    # The encoding rises with the response, so that both have the same order.
    assert np.array_equal(mean[:, :20].argmax(axis=1), known.argmax(axis=1))
    assert np.array_equal(state.slot_rewards.context[:, :20], known.astype(np.float64))
    assert np.isinf(state.slot_rewards.context[:, 20:]).all()


def test_the_best_response_of_each_slot_is_asked_for(seed):
    """Each slot's part of the condition is the encoding of the quantile of its own responses."""
    policy, rng = SlateCVAE(hidden=4, quantile=1.0, training=BRIEF), np.random.default_rng(seed)
    state = policy.update(policy.init(SLATES, 4, rng), some_feedback(SLATES, 4, 30, seed), rng)
    columns, asked = policy.conditions(state, rng)
    parts = asked.reshape(4, 3, BIN_EDGES)
    np.testing.assert_allclose(parts, np.broadcast_to(np.eye(BIN_EDGES)[-1], parts.shape))
    np.testing.assert_allclose(columns.reshape(4, 30, 3, BIN_EDGES).sum(axis=-1), 1.0)


def test_it_learns_what_is_good_in_each_slot(seed):
    """Each slot with choice 1 adds 0.3 to the chance of a reward; uniform choices earn 0.45."""
    training = Training(steps=200, batch=64, learning_rate=0.02)
    policy, rng = SlateCVAE(hidden=8, latent=2, training=training), np.random.default_rng(seed)
    feedback = some_feedback(SLATES, 4, 600, seed)
    paid = rng.random((4, 600)) < 0.3 * feedback.action.sum(axis=-1)
    state = policy.update(
        policy.init(SLATES, 4, rng), feedback._replace(reward=paid.astype(float)), rng
    )
    action = policy.act(state, some_contexts(SLATES, 4, 500, seed), rng).action
    # Of 6000 uniform choices the share of ones has a standard error of 0.0065.
    assert action.mean() > 0.5 + 6 * 0.0065
