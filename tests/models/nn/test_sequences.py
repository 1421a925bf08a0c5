"""An autoregressive network that numpy evaluates, and the same one evaluated by JAX."""

import numpy as np
import pytest

from submax.research.rivals.designs import DeviceSequence
from submax.research.rivals.sequences import AutoregressiveNetwork, DecodedSequence

SIZES = (2, 3, 4)
ROUNDING = {"rtol": 1e-4, "atol": 1e-6}
"""Float32 has 24 bits; logits up to about 50 have an error of a few times 50 · 2⁻²⁴."""


def some_sequence(kind):
    rng = np.random.default_rng(3)
    silent = AutoregressiveNetwork.silent(2, 2, SIZES, 3, 5)
    network = AutoregressiveNetwork(*(rng.normal(size=part.shape).astype(kind) for part in silent))
    return DecodedSequence(network, network.given(rng.normal(size=(2, 6, 3))), SIZES)


@pytest.fixture
def exact():
    return some_sequence(np.float64)


@pytest.fixture
def decoded():
    return some_sequence(np.float32)


def on_device(decoded):
    return DeviceSequence.of(decoded.network, decoded.given, decoded.sizes)


# The earlier choices have 1, 2 and 6 combinations.
@pytest.mark.parametrize("count", [1, 2, 5, 6, 40])
def test_actions_have_the_probabilities_of_the_list(exact, count):
    action = np.random.default_rng(count).integers(SIZES, size=(2, 6, count, 3))
    index = np.ravel_multi_index(np.moveaxis(action, -1, 0), SIZES)
    listed = np.take_along_axis(exact.prob_of_all(), index[:, :, None], axis=-1)
    np.testing.assert_allclose(exact.prob(action), listed, rtol=1e-12)


@pytest.mark.parametrize("count", [1, 5, 8])
def test_draws_follow_uniform_numbers_slot_by_slot(exact, count):
    drawn = exact.sample(1, count, np.random.default_rng(7))
    uniform = np.random.default_rng(7).random((3, 2, 6, count))
    joint = exact.prob_of_all()[:, :, 1].reshape(2, 6, *SIZES)
    for place in np.ndindex(2, 6, count):
        rest = joint[place[:2]]
        for slot, choice in enumerate(drawn[place]):
            chances = rest.reshape(len(rest), -1).sum(axis=1)
            below = chances.cumsum() / chances.sum()
            assert (below <= uniform[slot][place]).sum() == choice
            rest = rest[choice]


def test_actions_have_the_probabilities_of_numpy(decoded):
    action = np.random.default_rng(1).integers(SIZES, size=(2, 6, 7, 3))
    found = on_device(decoded).prob(action)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, decoded.prob(action), **ROUNDING)
    # Actions that all rows share are broadcast.
    shared = on_device(decoded).prob(action[:1, :1])
    np.testing.assert_allclose(shared, decoded.prob(action[:1, :1]), **ROUNDING)


@pytest.mark.parametrize("level", [0, 1])
def test_the_same_random_numbers_give_the_same_draws(decoded, level):
    rngs = np.random.default_rng(5), np.random.default_rng(5)
    drawn = on_device(decoded).sample(level, 9, rngs[0])
    np.testing.assert_array_equal(drawn, decoded.sample(level, 9, rngs[1]))
    assert drawn.dtype == np.int64
    # The stream goes on alike.
    assert rngs[0].random() == rngs[1].random()


class NearlyOne:
    """Random numbers that float32 cannot distinguish from 1."""

    def random(self, shape):
        return np.full(shape, 1 - 2.0**-26)


@pytest.mark.parametrize("impossible", [1, 2, 3])
def test_no_draw_has_probability_0(impossible):
    network = AutoregressiveNetwork.silent(1, 1, (5,), 1, 4)
    network.head_bias[..., 5 - impossible :] = -200
    decoded = DecodedSequence(network, network.given(np.zeros((1, 2, 1))), (5,))
    drawn = on_device(decoded).sample(0, 3, NearlyOne())
    np.testing.assert_array_equal(drawn, 4 - impossible)
    np.testing.assert_array_equal(drawn, decoded.sample(0, 3, NearlyOne()))


def test_rows_are_selected_for_each_replica(decoded):
    row = np.array([[4, 1], [0, 5]])
    action = np.random.default_rng(1).integers(SIZES, size=(2, 2, 3, 3))
    found, wanted = (one.rows(row).rows(row % 2) for one in (on_device(decoded), decoded))
    np.testing.assert_allclose(found.prob(action), wanted.prob(action), **ROUNDING)
    drawn, expected = (one.sample(1, 4, np.random.default_rng(2)) for one in (found, wanted))
    np.testing.assert_array_equal(drawn, expected)
