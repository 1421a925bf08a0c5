import numpy as np
import pytest

from submax import Feedback, Problem, Slots, Training
from submax.policies import ClimbingDropoutThompson, ClimbingEpsilonGreedy
from submax.research.rivals.dropout import climbed_actions
from submax.research.rivals.value_networks import ValueBelief, ValueNetwork

pytestmark = pytest.mark.xdist_group("ValueBelief")

PROBLEM = Problem(Slots((2, 3, 4)), context_width=2)
REPLICAS, HIDDEN = 2, 8
TRAINING = Training(steps=20, batch=16, learning_rate=0.02)


def random_belief(seed):
    """A value network with random weights in all layers."""
    rng = np.random.default_rng(seed)
    silent = ValueNetwork.silent(REPLICAS, 9, 2, HIDDEN)
    network = ValueNetwork(*(rng.normal(size=part.shape).astype(np.float32) for part in silent))
    return ValueBelief.unlisted(PROBLEM, REPLICAS, HIDDEN)._replace(network=network)


def better_neighbours(belief, context, action, masks=None):
    """How many actions that differ in one slot have a higher value."""
    listed = belief.logits(context, masks)
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
    context = rng.normal(size=(REPLICAS, 30, 2))
    starts = PROBLEM.space.uniform((REPLICAS, 3), rng)
    masks = tuple((rng.random((2, REPLICAS, 30, HIDDEN)) < 0.8).astype(np.float32) / 0.8)
    for mask in (None, masks):
        end = climbed_actions(belief, context, starts, 50, mask)
        assert better_neighbours(belief, context, end, mask) == 0


def test_climbs_from_every_action_find_the_best_one(seed):
    belief, rng = random_belief(seed), np.random.default_rng(seed)
    context = rng.normal(size=(REPLICAS, 20, 2))
    end = climbed_actions(belief, context, np.stack([PROBLEM.space.listing()] * REPLICAS), 50)
    value = belief.logits(context)
    chosen = np.take_along_axis(value, PROBLEM.space.index(end)[..., None], axis=-1)[..., 0]
    np.testing.assert_allclose(chosen, value.max(axis=-1), atol=1e-5)


def feedback_of(rng, rows=60):
    """Rows in which the last choice of the last slot is paid."""
    action = PROBLEM.space.uniform((REPLICAS, rows), rng)
    reward = (action[..., 2] == 3).astype(float)
    context = rng.normal(size=(REPLICAS, rows, 2))
    return Feedback(context, action, reward, None, np.ones((REPLICAS, rows)))


def test_epsilon_greedy_explores_with_its_probability(seed):
    rng = np.random.default_rng(seed)
    policy = ClimbingEpsilonGreedy(0.3, hidden=HIDDEN, training=TRAINING)
    state = policy.update(policy.init(PROBLEM, REPLICAS, rng), feedback_of(rng), rng)
    context = np.repeat(rng.normal(size=(REPLICAS, 1, 2)), 2000, axis=1)
    action, log_prob = policy.act(state, context, rng)
    greedy = log_prob == log_prob.max()
    assert np.allclose(np.exp(log_prob[greedy]), 0.7 + 0.3 / 24)
    assert np.allclose(np.exp(log_prob[~greedy]), 0.3 / 24)
    share = greedy.mean()
    error = np.sqrt(0.7125 * 0.2875 / greedy.size)
    assert abs(share - (0.7 + 0.3 / 24)) < 6 * error
    assert np.array_equal(policy.log_prob(state, context, action), log_prob)


def test_dropout_thompson_decides_by_the_share_of_its_masks(seed):
    rng = np.random.default_rng(seed)
    policy = ClimbingDropoutThompson(0.3, masks=4, hidden=HIDDEN, training=TRAINING)
    state = policy.update(policy.init(PROBLEM, REPLICAS, rng), feedback_of(rng), rng)
    context = np.repeat(rng.normal(size=(REPLICAS, 1, 2)), 400, axis=1)
    action = policy.act(state, context, rng).action
    prob = np.exp(policy.log_prob(state, context, action))
    assert np.allclose(prob * 4, np.rint(prob * 4))
    for replica in range(REPLICAS):
        _, first, times = np.unique(
            PROBLEM.space.index(action[replica]), return_index=True, return_counts=True
        )
        expected = prob[replica, first]
        error = np.sqrt(expected * (1 - expected) / 400) + 1e-12
        assert np.all(np.abs(times / 400 - expected) < 6 * error)
