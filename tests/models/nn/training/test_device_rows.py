import jax
import numpy as np
import pytest

from submax.core.memory.held_out import HeldOut
from submax.core.memory.minibatches import Minibatches
from submax.core.memory.training import Training
from submax.models.nn.designs.softmax_design import SoftmaxDesign
from submax.models.nn.training.device_rows import DeviceRows
from submax.models.nn.training.training import train

pytestmark = pytest.mark.xdist_group("Softmax")

DESIGN = SoftmaxDesign((3,), 1, 2, 8, "modulation")
"""Rows have one number of the context, an action, two of the reward, and a weight."""


def some_minibatches(seed):
    rng = np.random.default_rng((seed, 3))
    table = rng.normal(size=(2, 256, 5)).astype(np.float32)
    table[..., 1] = rng.integers(3, size=(2, 256))
    table[..., 2:4] = np.eye(2)[rng.integers(2, size=(2, 256))]
    table[..., 4] = 1.0
    return Minibatches(table.reshape(-1, 5), np.array([200, 90]))


@pytest.mark.parametrize("holds_out", [False, True])
def test_rows_on_a_device_are_those_of_the_host(holds_out, seed):
    minibatches = some_minibatches(seed)
    held_out = HeldOut.of(minibatches.filled) if holds_out else None
    found = []
    for on_device in (False, True):
        rows, rng = DeviceRows.of(minibatches, on_device), np.random.default_rng(seed)
        drawn = rows.draw(4, 8, rng, held_out)
        assert isinstance(drawn, jax.Array) == on_device
        assert drawn.shape == (4, 2, 8, 5)
        # The stream goes on alike.
        found.append((np.asarray(drawn), rng.random()))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]


def test_a_processor_keeps_its_rows_in_numpy():
    assert DeviceRows.of(some_minibatches(0)).table is None


@pytest.mark.parametrize("steps", [7, "fitted"])
def test_training_does_not_depend_on_where_rows_are_gathered(steps, seed, monkeypatch):
    minibatches, training = some_minibatches(seed), Training(steps=steps, batch=16)
    host = train(DESIGN, training, minibatches, np.random.default_rng(seed))
    real = DeviceRows.of
    monkeypatch.setattr(DeviceRows, "of", lambda given: real(given, on_device=True))
    device = train(DESIGN, training, minibatches, np.random.default_rng(seed))
    for name, values in host.parameters.items():
        np.testing.assert_array_equal(values, device.parameters[name])
