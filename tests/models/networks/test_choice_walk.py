"""Actions that share evaluations of an autoregressive network."""

import numpy as np
import pytest

from submax.models.networks.autoregressive_network import AutoregressiveNetwork
from submax.models.networks.decoded_sequence import DecodedSequence

SIZES = (2, 3, 4)


@pytest.fixture
def decoded():
    rng = np.random.default_rng(3)
    silent = AutoregressiveNetwork.silent(2, 2, SIZES, 3, 5)
    network = AutoregressiveNetwork(*(rng.normal(size=part.shape) for part in silent))
    return DecodedSequence(network, network.given(rng.normal(size=(2, 6, 3))), SIZES)


# The earlier choices have 1, 2 and 6 combinations.
@pytest.mark.parametrize("count", [1, 2, 5, 6, 40])
def test_actions_have_the_probabilities_of_the_list(decoded, count):
    action = np.random.default_rng(count).integers(SIZES, size=(2, 6, count, 3))
    index = np.ravel_multi_index(np.moveaxis(action, -1, 0), SIZES)
    listed = np.take_along_axis(decoded.prob_of_all(), index[:, :, None], axis=-1)
    np.testing.assert_allclose(decoded.prob(action), listed, rtol=1e-12)


@pytest.mark.parametrize("count", [0, 1, 40])
def test_no_rows_have_no_probabilities_and_no_draws(decoded, count):
    empty = decoded.rows(np.empty((2, 0), dtype=np.int64))
    assert empty.prob(np.empty((2, 0, count, 3), dtype=np.int64)).shape == (2, 0, 2, count)
    assert empty.sample(0, count, np.random.default_rng(7)).shape == (2, 0, count, 3)


@pytest.mark.parametrize("count", [1, 5, 8])
def test_draws_follow_uniform_numbers_slot_by_slot(decoded, count):
    drawn = decoded.sample(1, count, np.random.default_rng(7))
    uniform = np.random.default_rng(7).random((3, 2, 6, count))
    joint = decoded.prob_of_all()[:, :, 1].reshape(2, 6, *SIZES)
    for place in np.ndindex(2, 6, count):
        rest = joint[place[:2]]
        for slot, choice in enumerate(drawn[place]):
            chances = rest.reshape(len(rest), -1).sum(axis=1)
            below = chances.cumsum() / chances.sum()
            assert (below <= uniform[slot][place]).sum() == choice
            rest = rest[choice]


def test_rows_in_parts_are_drawn_and_evaluated_as_together(decoded, monkeypatch):
    together = decoded.sample(0, 9, np.random.default_rng(1))
    monkeypatch.setattr("submax.models.networks.decoded_sequence.ACTIVATIONS_AT_ONCE", 100)
    np.testing.assert_array_equal(decoded.sample(0, 9, np.random.default_rng(1)), together)
    index = np.ravel_multi_index(np.moveaxis(together, -1, 0), SIZES)
    listed = np.take_along_axis(decoded.prob_of_all(), index[:, :, None], axis=-1)
    np.testing.assert_allclose(decoded.prob(together), listed, rtol=1e-12)
