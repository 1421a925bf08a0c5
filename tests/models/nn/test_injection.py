import jax
import numpy as np
import pytest
from scipy.special import expit

from submax.models.nn.reward_injection import Injection, Trunk

INPUTS, OUTPUTS, BIN_EDGES, REPLICAS = 3, 4, 3, 2
# Encoded rewards: one at each bin edge, one between two of them.
REWARDS = np.array([*np.eye(BIN_EDGES), [0.0, 0.3, 0.7]], dtype=np.float32)


def layer(form, seed):
    """A layer of all replicas with no parameter at zero."""
    rng = np.random.default_rng(seed)
    drawn = [Injection.drawn(form, INPUTS, OUTPUTS, BIN_EDGES, rng) for _ in range(REPLICAS)]

    def moved(*leaves):
        stacked = np.stack([np.asarray(leaf) for leaf in leaves])
        return (stacked + rng.normal(size=stacked.shape)).astype(np.float32)

    return jax.tree.map(moved, *drawn)


def of_replica(layer, replica):
    return jax.tree.map(lambda leaf: leaf[replica], layer)


def formula(form, layer, x, reward):
    """ReLU(s(r) ⊙ (W h + b) + t(r)), with each row of a table by its share in the reward."""
    dense = np.asarray(layer.dense.weight, dtype=float) @ x + np.asarray(layer.dense.bias)
    scale = 1.0
    if form in ("modulation", "gate"):
        part = reward @ layer.scale
        scale = 1 + part if form == "modulation" else expit(part)
    shift = reward @ layer.shift if form in ("modulation", "concatenation", "naive") else 0.0
    return np.maximum(scale * dense + shift, 0.0)


@pytest.mark.parametrize("form", ["modulation", "gate", "concatenation", "naive", "plain"])
def test_a_layer_is_its_formula(form, seed):
    given = layer(form, seed)
    x = np.random.default_rng((seed, 1)).normal(size=INPUTS).astype(np.float32)
    for replica in range(REPLICAS):
        one = of_replica(given, replica)
        for reward in REWARDS:
            expected = formula(form, one, x, reward)
            np.testing.assert_allclose(one(x, reward), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("inputs", [0, INPUTS])
@pytest.mark.parametrize("form", ["modulation", "gate", "concatenation"])
def test_all_levels_are_equal_at_first_and_can_be_separated(form, inputs, seed):
    """No form that the ablation compares begins with an advantage over another.

    The reward part is zero, and its gradient is not.
    """
    trunk = Trunk.drawn(inputs, 16, BIN_EDGES, form, np.random.default_rng(seed))
    x = np.random.default_rng(seed).normal(size=inputs).astype(np.float32)
    first, *others = [np.asarray(trunk(x, one)) for one in REWARDS]
    assert first.any()
    assert all(np.array_equal(first, one) for one in others)
    slope = jax.grad(lambda one: one(x, REWARDS[1]).sum())(trunk).first
    table = slope.scale if form == "gate" else slope.shift
    assert np.asarray(table)[1].any()


def test_input_concatenation_starts_with_levels_that_differ(seed):
    """As the paper describes its naive alternative: the reward is an input like any other."""
    trunk = Trunk.drawn(INPUTS, 16, BIN_EDGES, "input-concatenation", np.random.default_rng(seed))
    x = np.random.default_rng(seed).normal(size=INPUTS).astype(np.float32)
    first, second = (np.asarray(trunk(x, one)) for one in REWARDS[:2])
    assert not np.array_equal(first, second)
