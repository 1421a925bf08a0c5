import numpy as np
import pytest

from submax.models.networks.value_network import Hidden, ValueNetwork

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
def test_the_same_actions_in_every_row(width, rows, seed):
    check(some_network(seed, width), some_context(rows, seed, width), LISTING)


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_actions_of_their_own_in_every_row(rows, seed):
    rng = np.random.default_rng(seed)
    choices = rng.integers(SIZES, size=(REPLICAS, rows, 5, 2)) + FIRST
    check(some_network(seed), some_context(rows, seed), choices)


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


def test_slopes_are_those_of_small_steps(seed):
    network = some_network(seed)
    context = some_context(3, seed)
    hidden = network.hidden(context, LISTING)
    slopes = network.slopes(hidden)
    for replica, row, one in np.ndindex(REPLICAS, 3, len(LISTING)):
        for layer, bias in enumerate(("first_bias", "second_bias")):
            for unit in range(HIDDEN):
                ends = []
                for step in (-1e-8, 1e-8):
                    moved = getattr(network, bias).astype(float)
                    moved[replica, unit] += step
                    changed = network._replace(**{bias: moved})
                    choices = LISTING[one]
                    ends.append(slow(changed, replica, context[replica, row], choices)[2])
                expected = (ends[1] - ends[0]) / 2e-8
                found = slopes[layer][replica, row, one, unit]
                np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_a_unit_that_is_off_has_slope_zero(seed):
    network = some_network(seed)
    off = np.zeros((REPLICAS, 1, 1, HIDDEN), dtype=np.float32)
    slopes = network.slopes(Hidden(off, off))
    assert not np.any(slopes.first)
    assert not np.any(slopes.second)


def test_two_networks_are_put_together_by_replica(seed):
    one, other = some_network(seed), some_network(seed + 1)
    together = one.where(np.array([False, True]), other)
    for found, mine, yours in zip(together, one, other, strict=True):
        assert np.array_equal(found, np.stack([yours[0], mine[1]]))
