"""Networks as numpy arrays, against one layer after the other."""

import numpy as np
import pytest

from submax.models.networks.choices import SlotNetwork
from submax.research.rivals.value_networks import ValueNetwork

CLOSE = {"rtol": 1e-4, "atol": 1e-4}
LISTING = np.array([[a, 2 + b] for a in range(2) for b in range(3)])


def drawn(silent, rng):
    return type(silent)(*(rng.normal(size=array.shape).astype(np.float32) for array in silent))


@pytest.mark.parametrize("shape", [(2, 3, 4, 2, 5, 6), (2, 2, 3, 0, 4, 5), (1, 1, 1, 1, 1, 1)])
def test_logits_of_slots_are_two_hidden_layers_and_a_head(shape, seed):
    rng = np.random.default_rng((seed, *shape))
    network = drawn(SlotNetwork.silent(*shape), rng)
    context = rng.normal(size=(shape[0], 3, shape[3]))
    found, exact = network.logits(context), SlotNetwork(*(one.astype(float) for one in network))
    assert found.shape == (*shape[:2], 3, shape[2], shape[5])
    for replica, level, row, draw in np.ndindex(found.shape[:-1]):
        first = context[replica, row] @ exact.context_weight[replica, level]
        hidden = np.maximum(first + exact.first_bias[replica, level, draw], 0.0)
        hidden = hidden @ exact.second_weight[replica, level] + exact.second_bias[replica, level, 0]
        expected = np.maximum(hidden, 0.0) @ exact.head_weight[replica, 0]
        expected += exact.head_bias[replica, 0, 0]
        np.testing.assert_allclose(found[replica, level, row, draw], expected, **CLOSE)


def slow(network, replica, context, choices, masks=(1.0, 1.0)):
    """Both hidden layers and the logit of one action in one context."""
    one = ValueNetwork(*(array[replica].astype(float) for array in network))
    first = one.first_bias + context @ one.context_weight + one.choice_weight[choices].sum(axis=0)
    first = np.maximum(first, 0.0) * masks[0]
    second = np.maximum(first @ one.second_weight + one.second_bias, 0.0) * masks[1]
    return first, second, second @ one.head_weight + one.head_bias


@pytest.mark.parametrize("width", [0, 2])
@pytest.mark.parametrize("masked", [False, True])
def test_values_are_two_hidden_layers_and_a_head(masked, width, seed):
    rng = np.random.default_rng((seed, width))
    network = drawn(ValueNetwork.silent(2, 5, width, 4), rng)
    context, masks = rng.normal(size=(2, 3, width)), rng.choice([0.0, 1.25], size=(2, 2, 3, 4))
    own = rng.permuted(np.tile(LISTING, (2, 3, 1, 1)), axis=2)
    for choices, every in ((LISTING, np.tile(LISTING, (2, 3, 1, 1))), (own, own)):
        hidden = network.hidden(context, choices, tuple(masks) if masked else None)
        found = (*hidden, network.logits(hidden))
        for replica, row, one in np.ndindex(2, 3, 6):
            kept = masks[:, replica, row] if masked else (1.0, 1.0)
            given = context[replica, row], every[replica, row, one], kept
            for array, expected in zip(found, slow(network, replica, *given), strict=True):
                np.testing.assert_allclose(array[replica, row, one], expected, **CLOSE)


def test_slopes_are_those_of_small_steps(seed):
    rng = np.random.default_rng(seed)
    network, context = drawn(ValueNetwork.silent(2, 5, 2, 4), rng), rng.normal(size=(2, 3, 2))
    slopes = network.slopes(network.hidden(context, LISTING))
    for layer, bias in enumerate(("first_bias", "second_bias")):
        for replica, row, one, unit in np.ndindex(2, 3, 6, 4):
            ends = []
            for step in (-1e-8, 1e-8):
                moved = getattr(network, bias).astype(float)
                moved[replica, unit] += step
                changed = network._replace(**{bias: moved})
                ends.append(slow(changed, replica, context[replica, row], LISTING[one])[2])
            expected = (ends[1] - ends[0]) / 2e-8
            found = slopes[layer][replica, row, one, unit]
            np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)
