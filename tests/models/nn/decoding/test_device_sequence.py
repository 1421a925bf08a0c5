"""An autoregressive network that JAX evaluates, beside the one of numpy."""

import numpy as np
import pytest

from submax.core.contracts.problem import Problem
from submax.core.memory.training import Training
from submax.core.spaces.slots import Slots
from submax.estimators.sequential.autoregressive import Autoregressive
from submax.models.networks.autoregressive_network import AutoregressiveNetwork
from submax.models.networks.decoded_sequence import DecodedSequence
from submax.models.nn.decoding import device_sequence
from submax.models.nn.decoding.device_sequence import DeviceSequence, _draws
from submax.testing.rules.examples import some_feedback

SIZES = (2, 3, 4)
ROUNDING = {"rtol": 1e-4, "atol": 1e-6}
"""Float32 has 24 bits; logits up to about 50 have an error of a few times 50 · 2⁻²⁴."""


@pytest.fixture
def decoded():
    rng = np.random.default_rng(3)
    silent = AutoregressiveNetwork.silent(2, 2, SIZES, 3, 5)
    drawn = (rng.normal(size=part.shape).astype(np.float32) for part in silent)
    network = AutoregressiveNetwork(*drawn)
    return DecodedSequence(network, network.given(rng.normal(size=(2, 6, 3))), SIZES)


def on_device(decoded):
    return DeviceSequence.of(decoded.network, decoded.given, decoded.sizes)


@pytest.mark.parametrize("together", [2**24, 2 * 2 * 5 * 8])
def test_actions_have_the_probabilities_of_numpy(decoded, together, monkeypatch):
    monkeypatch.setattr("submax.models.nn.decoding.device_sequence.ACTIVATIONS_AT_ONCE", together)
    action = np.random.default_rng(1).integers(SIZES, size=(2, 6, 7, 3))
    found = on_device(decoded).prob(action)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, decoded.prob(action), **ROUNDING)
    # Actions that all rows share are broadcast.
    shared = on_device(decoded).prob(action[:1, :1])
    np.testing.assert_allclose(shared, decoded.prob(action[:1, :1]), **ROUNDING)


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("together", [2**24, 2 * 2 * 5 * 8])
def test_the_same_random_numbers_give_the_same_draws(decoded, level, together, monkeypatch):
    monkeypatch.setattr("submax.models.nn.decoding.device_sequence.ACTIVATIONS_AT_ONCE", together)
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


def test_a_number_that_is_rounded_up_to_the_total_draws_a_possible_choice():
    """Products of float32 are rounded: a number below 1 times the total may be the total."""
    network = AutoregressiveNetwork.silent(1, 1, (5,), 1, 4)
    network.head_bias[..., 3:] = -200
    given = np.asarray(network.given(np.zeros((1, 1, 1))), np.float32)
    row, ones = np.zeros((1, 3), np.int32), np.ones((1, 1, 3), np.float32)
    drawn = _draws(network, given, np.int32(0), row, ones, sizes=(5,))
    np.testing.assert_array_equal(drawn, 2)


@pytest.mark.parametrize("sizes", [(2, 300), (300, 2), (2, 3)])
def test_as_many_numbers_are_held_as_are_allowed(sizes, monkeypatch):
    held, chances = [], device_sequence._chances

    def measured(network, reached, slot, sizes):
        found = chances(network, reached, slot, sizes)
        held.extend([reached.size, found.size])
        return found

    monkeypatch.setattr(device_sequence, "_chances", measured)
    network = AutoregressiveNetwork.silent(2, 2, sizes, 3, 7)
    allowed = 2 * 2 * max(7, *sizes) * 16
    monkeypatch.setattr(device_sequence, "ACTIVATIONS_AT_ONCE", allowed)
    sequence = DeviceSequence.of(network, network.given(np.zeros((2, 4, 3))), sizes)
    found = sequence.prob(np.zeros((2, 4, 20, 2), dtype=np.int64))
    np.testing.assert_allclose(found, 1 / np.prod(sizes), rtol=1e-5)
    assert max(held) == allowed


def test_rows_are_selected_for_each_replica(decoded):
    row = np.array([[4, 1], [0, 5]])
    action = np.random.default_rng(1).integers(SIZES, size=(2, 2, 3, 3))
    found, wanted = (one.rows(row).rows(row % 2) for one in (on_device(decoded), decoded))
    np.testing.assert_allclose(found.prob(action), wanted.prob(action), **ROUNDING)
    drawn, expected = (one.sample(1, 4, np.random.default_rng(2)) for one in (found, wanted))
    np.testing.assert_array_equal(drawn, expected)


def test_no_rows_have_no_probabilities_and_no_draws(decoded):
    empty = on_device(decoded).rows(np.empty((2, 0), dtype=np.int64))
    assert empty.prob(np.empty((2, 0, 4, 3), dtype=np.int64)).shape == (2, 0, 2, 4)
    assert empty.sample(0, 4, np.random.default_rng(7)).shape == (2, 0, 4, 3)


@pytest.mark.parametrize(("contexts", "device"), [(255, False), (256, True)])
def test_a_belief_about_many_contexts_uses_an_accelerator(contexts, device, monkeypatch):
    problem, rng = Problem(Slots(SIZES), 2), np.random.default_rng(0)
    training = Training(steps=1, batch=8, standardized=True)
    estimator = Autoregressive(hidden=4, training=training)
    params = estimator.init(problem, 1, rng)
    params = estimator.fit(params, some_feedback(problem, 1, 20, 0), rng)
    context = rng.normal(size=(1, contexts, 2))
    action = rng.integers(SIZES, size=(1, contexts, 3, 3))
    expected = estimator.belief(params, context).prob(action)
    monkeypatch.setattr("jax.default_backend", lambda: "gpu")
    belief = estimator.belief(params, context)
    kind = DeviceSequence if device else DecodedSequence
    assert isinstance(belief.rows(np.zeros((1, 1), dtype=np.int64)), kind)
    np.testing.assert_allclose(belief.prob(action), expected, **ROUNDING)
