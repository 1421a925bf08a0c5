import numpy as np
import pytest

from submax.core.contracts.problem import Problem
from submax.core.memory.training import Training
from submax.core.spaces.slots import Slots
from submax.policies.neural.value_belief import ValueBelief
from submax.policies.reward_conditioned.slate_cvae import BIN_EDGES, SlateCVAE
from submax.policies.reward_conditioned.slot_responses import slot_responses
from submax.testing.rules.examples import some_contexts, some_feedback

pytestmark = pytest.mark.xdist_group("ValueBelief")

PROBLEM = Problem(Slots((2, 2, 2)), context_width=2)
BRIEF = Training(steps=6, batch=8, learning_rate=0.05)


@pytest.fixture(scope="module")
def taught(seed):
    """A value network, its buffer and the feedback behind both."""
    rng = np.random.default_rng(seed)
    feedback = some_feedback(PROBLEM, 4, 12, seed)
    belief = ValueBelief.unlisted(PROBLEM, 4, 4).trained(feedback, BRIEF, 0.0, rng)
    return belief, feedback


def test_responses_compare_a_choice_with_all_others(taught, value):
    """With every choice as an alternative, recompute the responses one value at a time."""
    belief, feedback = taught
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


def test_the_best_response_of_each_slot_is_asked_for(seed):
    """Each slot's part of the condition is the encoding of the quantile of its own responses."""
    policy, rng = SlateCVAE(hidden=4, quantile=1.0, training=BRIEF), np.random.default_rng(seed)
    state = policy.update(policy.init(PROBLEM, 4, rng), some_feedback(PROBLEM, 4, 30, seed), rng)
    columns, asked = policy.conditions(state, np.random.default_rng(seed))
    assert columns.shape == (4, 30, 3 * BIN_EDGES)
    assert asked.shape == (4, 1, 3 * BIN_EDGES)
    parts = asked.reshape(4, 3, BIN_EDGES)
    np.testing.assert_allclose(parts, np.broadcast_to(np.eye(BIN_EDGES)[-1], parts.shape))
    np.testing.assert_allclose(columns.reshape(4, 30, 3, BIN_EDGES).sum(axis=-1), 1.0)


def test_known_rewards_of_slots_are_the_responses(seed):
    """The first 20 rows have a reward of each slot, the others of the joint action alone."""
    policy, rng = SlateCVAE(hidden=4, training=BRIEF), np.random.default_rng(seed)
    state = policy.init(PROBLEM, 4, rng)
    first, second = some_feedback(PROBLEM, 4, 20, seed), some_feedback(PROBLEM, 4, 5, seed + 1)
    known = rng.random((4, 20, 3))
    state = policy.update(state, first._replace(slot_reward=known), rng)
    state = policy.update(state, second, rng)
    columns, _ = policy.conditions(state, rng)
    mean = columns.reshape(4, 25, 3, BIN_EDGES) @ np.arange(BIN_EDGES)
    # The encoding rises with the response, so that both have the same order.
    assert np.array_equal(mean[:, :20].argmax(axis=1), known.argmax(axis=1))
    assert np.array_equal(state.slot_rewards.context[:, :20], known.astype(np.float64))
    assert np.isinf(state.slot_rewards.context[:, 20:]).all()


def test_it_learns_what_is_good_in_each_slot(seed):
    """Each slot with choice 1 adds 0.3 to the chance of a reward; uniform choices earn 0.45."""
    training = Training(steps=200, batch=64, learning_rate=0.02)
    policy, rng = SlateCVAE(hidden=8, latent=2, training=training), np.random.default_rng(seed)
    feedback = some_feedback(PROBLEM, 4, 600, seed)
    paid = rng.random((4, 600)) < 0.3 * feedback.action.sum(axis=-1)
    state = policy.update(
        policy.init(PROBLEM, 4, rng), feedback._replace(reward=paid.astype(float)), rng
    )
    action = policy.act(state, some_contexts(PROBLEM, 4, 500, seed), rng).action
    # Of 6000 uniform choices the share of ones has a standard error of 0.0065.
    assert action.mean() > 0.5 + 6 * 0.0065
