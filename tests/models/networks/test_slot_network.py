import numpy as np
import pytest

from submax.models.networks.slot_network import SlotNetwork

SHAPES = {
    "plain": (2, 3, 4, 2, 5, 6),
    "no context": (2, 2, 3, 0, 4, 5),
    "one of each": (1, 1, 1, 1, 1, 1),
}


def some_network(shape, seed):
    rng = np.random.default_rng((seed, *shape))
    silent = SlotNetwork.silent(*shape)
    return SlotNetwork(*(rng.normal(size=array.shape).astype(np.float32) for array in silent))


def slow(network, context, replica, level, row, draw):
    """The logits for one replica, level, row and draw, one layer after the other."""
    first = network.first_bias[replica, level, draw].astype(float)
    first = first + context[replica, row] @ network.context_weight[replica, level].astype(float)
    hidden = np.maximum(first, 0.0) @ network.second_weight[replica, level].astype(float)
    hidden = np.maximum(hidden + network.second_bias[replica, level, 0], 0.0)
    return hidden @ network.head_weight[replica, 0].astype(float) + network.head_bias[replica, 0, 0]


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("rows", [0, 1, 3])
def test_logits_are_two_hidden_layers_and_a_head(shape, rows, seed):
    replicas, levels, draws, width, _, choices = shape
    network = some_network(shape, seed)
    context = np.random.default_rng(seed).normal(size=(replicas, rows, width))
    found = network.logits(context)
    assert found.shape == (replicas, levels, rows, draws, choices)
    assert found.dtype == np.float32
    for place in np.ndindex(found.shape[:-1]):
        np.testing.assert_allclose(
            found[place], slow(network, context, *place), rtol=1e-4, atol=1e-4
        )


def test_a_silent_network_has_logits_of_zero():
    network = SlotNetwork.silent(2, 3, 4, 2, 5, 6)
    assert not np.any(network.logits(np.ones((2, 7, 2))))


@pytest.mark.parametrize("level", [0, 2])
def test_at_one_level_it_is_that_level(level, seed):
    network = some_network(SHAPES["plain"], seed)
    context = np.random.default_rng(seed).normal(size=(2, 4, 2))
    found = network.at_level(level).logits(context)
    np.testing.assert_allclose(found[:, 0], network.logits(context)[:, level], rtol=1e-5, atol=1e-5)


def test_two_networks_are_put_together_by_replica(seed):
    one, other = (some_network(SHAPES["plain"], number) for number in (seed, seed + 1))
    together = one.where(np.array([False, True]), other)
    for found, mine, yours in zip(together, one, other, strict=True):
        assert np.array_equal(found, np.stack([yours[0], mine[1]]))
