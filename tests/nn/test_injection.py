import math

import jax
import numpy as np
import pytest

from submax.networks.slot_network import INJECTION_FORMS
from submax.nn.trunk import INJECTIONS, Trunk

INPUTS, OUTPUTS, LEVELS, REPLICAS = 3, 4, 3, 2


def layer(form, seed):
    """A layer of all replicas with no parameter at zero."""
    keys = jax.random.split(jax.random.key(seed), REPLICAS)
    drawn = [INJECTIONS[form].drawn(INPUTS, OUTPUTS, LEVELS, key) for key in keys]
    rng = np.random.default_rng(seed)

    def moved(*leaves):
        stacked = np.stack([np.asarray(leaf) for leaf in leaves])
        return (stacked + rng.normal(size=stacked.shape)).astype(np.float32)

    return jax.tree.map(moved, *drawn)


def of_replica(layer, replica):
    return jax.tree.map(lambda leaf: leaf[replica], layer)


def product(weight, x, bias):
    """W x + b, a number at a time."""
    return [
        float(bias[unit]) + sum(float(weight[unit][i]) * float(x[i]) for i in range(len(x)))
        for unit in range(len(bias))
    ]


def relu(x):
    return max(x, 0.0)


def modulation(layer, x, level):
    dense = product(layer.dense.weight, x, layer.dense.bias)
    scale, shift = layer.scale[level], layer.shift[level]
    return [relu((1 + scale[unit]) * dense[unit] + shift[unit]) for unit in range(OUTPUTS)]


def gate(layer, x, level):
    dense = product(layer.dense.weight, x, layer.dense.bias)
    return [
        relu(dense[unit]) / (1 + math.exp(-layer.opening[level][unit])) for unit in range(OUTPUTS)
    ]


def concatenation(layer, x, level):
    one_hot = [1.0 if other == level else 0.0 for other in range(LEVELS)]
    return [relu(one) for one in product(layer.dense.weight, [*x, *one_hot], layer.dense.bias)]


FORMULAS = {"modulation": modulation, "gate": gate, "concatenation": concatenation}


def test_every_form_has_a_layer_and_a_formula():
    assert sorted(INJECTIONS) == sorted(INJECTION_FORMS) == sorted(FORMULAS)


@pytest.mark.parametrize("form", INJECTION_FORMS)
def test_a_layer_is_its_formula(form, seed):
    given = layer(form, seed)
    x = np.random.default_rng((seed, 1)).normal(size=INPUTS).astype(np.float32)
    for replica in range(REPLICAS):
        one = of_replica(given, replica)
        for level in range(LEVELS):
            found = one(x, np.eye(LEVELS, dtype=np.float32)[level])
            np.testing.assert_allclose(found, FORMULAS[form](one, x, level), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("form", INJECTION_FORMS)
def test_folded_it_is_one_plain_layer_a_level(form, seed):
    given = layer(form, seed)
    folded = given.folded()
    assert folded.weight.shape == (REPLICAS, LEVELS, OUTPUTS, INPUTS)
    assert folded.bias.shape == (REPLICAS, LEVELS, OUTPUTS)
    x = np.random.default_rng((seed, 2)).normal(size=INPUTS)
    for replica in range(REPLICAS):
        for level in range(LEVELS):
            plain = product(folded.weight[replica, level], x, folded.bias[replica, level])
            expected = FORMULAS[form](of_replica(given, replica), x, level)
            np.testing.assert_allclose([relu(one) for one in plain], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("form", INJECTION_FORMS)
def test_a_trunk_is_one_layer_upon_the_other(form, seed):
    trunk = Trunk.drawn(INPUTS, OUTPUTS, LEVELS, form, jax.random.key(seed))
    x = np.random.default_rng((seed, 3)).normal(size=INPUTS).astype(np.float32)
    for level in range(LEVELS):
        first = FORMULAS[form](trunk.first, x, level)
        expected = FORMULAS[form](trunk.second, first, level)
        found = trunk(x, np.eye(LEVELS, dtype=np.float32)[level])
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_with_modulation_all_levels_are_equal_at_first(seed):
    x = np.random.default_rng(seed).normal(size=INPUTS).astype(np.float32)
    trunk = Trunk.drawn(INPUTS, OUTPUTS, LEVELS, "modulation", jax.random.key(seed))
    found = [np.asarray(trunk(x, one)) for one in np.eye(LEVELS, dtype=np.float32)]
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


@pytest.mark.parametrize("form", ["gate", "concatenation"])
def test_with_the_others_they_are_not(form, seed):
    # With 16 units the chance that all of them are off at both levels is small for any seed.
    trunk = Trunk.drawn(INPUTS, 16, LEVELS, form, jax.random.key(seed))
    x = np.ones(INPUTS, dtype=np.float32)
    low, high = (np.asarray(trunk(x, one)) for one in np.eye(LEVELS, dtype=np.float32)[:2])
    assert not np.array_equal(low, high)
