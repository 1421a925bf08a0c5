import numpy as np
import pytest

from submax.core.contracts.feedback import Feedback
from submax.core.contracts.problem import Problem
from submax.core.memory.training import Training
from submax.core.spaces.arms import Arms
from submax.models.networks.value_network import ValueNetwork
from submax.policies.neural.value_belief import ValueBelief

REPLICAS, SIZES, WIDTH, HIDDEN = 2, (2, 3), 2, 4
FIRST = np.array([0, 2])
LISTING = np.array([[a, b] for a in range(2) for b in range(3)]) + FIRST


def some_network(seed, width=WIDTH):
    rng = np.random.default_rng((seed, width))
    silent = ValueNetwork.silent(REPLICAS, sum(SIZES), width, HIDDEN)
    return ValueNetwork(*(rng.normal(size=array.shape).astype(np.float32) for array in silent))


def some_context(rows, seed, width=WIDTH):
    return np.random.default_rng((seed, 9)).normal(size=(REPLICAS, rows, width))


def slow(network, replica, context, choices, masks=(1.0, 1.0)):
    """Both hidden layers and the logit of one action in one context."""
    one = ValueNetwork(*(array[replica].astype(float) for array in network))
    first = one.first_bias + context @ one.context_weight
    for choice in choices:
        first = first + one.choice_weight[choice]
    first = np.maximum(first, 0.0) * masks[0]
    second = np.maximum(first @ one.second_weight + one.second_bias, 0.0) * masks[1]
    return first, second, second @ one.head_weight + one.head_bias


def check(network, context, choices, masks=None):
    """Compare with the slow way; ``choices [R, n, M, S]``."""

    def mask(layer, replica, row):
        rows = masks[layer].shape[1]
        return masks[layer][replica, row if rows > 1 else 0]

    given = choices if choices.ndim == 4 else np.tile(choices, (*context.shape[:2], 1, 1))
    hidden = network.hidden(context, choices, masks)
    logits = network.logits(hidden)
    assert logits.shape == given.shape[:3]
    for replica, row, one in np.ndindex(*logits.shape):
        kept = (1.0, 1.0) if masks is None else [mask(layer, replica, row) for layer in range(2)]
        expected = slow(network, replica, context[replica, row], given[replica, row, one], kept)
        found = (hidden.first, hidden.second, logits)
        for array, value in zip(found, expected, strict=True):
            np.testing.assert_allclose(array[replica, row, one], value, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("width", [0, WIDTH])
@pytest.mark.parametrize("rows", [0, 1, 3])
def test_the_same_actions_in_every_row_and_actions_of_their_own(width, rows, seed):
    network, context = some_network(seed, width), some_context(rows, seed, width)
    own = np.random.default_rng(seed).integers(SIZES, size=(REPLICAS, rows, 5, 2)) + FIRST
    for choices in (LISTING, own):
        check(network, context, choices)


@pytest.mark.parametrize("own", [False, True], ids=["a mask for all rows", "a mask a row"])
def test_masks_multiply_the_activations(own, seed):
    rng = np.random.default_rng(seed)
    shape = (REPLICAS, 3 if own else 1, HIDDEN)
    masks = tuple(rng.choice([0.0, 1.25], size=shape).astype(np.float32) for _ in range(2))
    check(some_network(seed), some_context(3, seed), LISTING, masks)


def test_a_silent_network_has_logits_of_zero():
    network = ValueNetwork.silent(REPLICAS, sum(SIZES), WIDTH, HIDDEN)
    hidden = network.hidden(np.ones((REPLICAS, 3, WIDTH)), LISTING)
    assert not np.any(network.logits(hidden))


@pytest.mark.xdist_group("ValueBelief")
@pytest.mark.slow
def test_a_new_value_network_prefers_no_action_and_knows_the_mean_reward(seed):
    """A fixed number of steps starts as fitted steps do: zero head, bias at the mean's logit."""
    rng = np.random.default_rng(seed)
    rows = 400
    reward = (rng.random((2, rows)) < np.array([[0.05], [0.6]])).astype(float)
    feedback = Feedback(
        rng.normal(size=(2, rows, 2)),
        rng.integers(3, size=(2, rows, 1)),
        reward,
        None,
        np.ones((2, rows)),
    )
    problem = Problem(Arms(3), context_width=2)
    training = Training(steps=1, batch=8, learning_rate=1e-8)
    belief = ValueBelief.empty(problem, 2, 8).trained(feedback, training, 0.0, rng)
    value = 1 / (1 + np.exp(-belief.logits(rng.normal(size=(2, 5, 2)))))
    mean = (reward.sum(axis=1) + 0.5) / (rows + 1)
    np.testing.assert_allclose(value, np.broadcast_to(mean[:, None, None], value.shape), rtol=1e-4)
