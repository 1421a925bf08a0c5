import numpy as np
import pytest

from submax.core.contracts.problem import Problem
from submax.core.memory.buffer import Buffer
from submax.core.memory.context_scaling import CUT_OFF, ContextScaling
from submax.core.memory.memory import Memory
from submax.core.spaces.arms import Arms
from submax.testing.rules.examples import some_feedback

WIDTH = 4
PROBLEM = Problem(Arms(2), context_width=WIDTH)


def with_contexts(context, weight):
    feedback = some_feedback(PROBLEM, *weight.shape, 0)._replace(context=context, weight=weight)
    return Buffer.empty(PROBLEM, len(weight)).add(feedback, Memory(), None)


@pytest.fixture(scope="module")
def buffer(seed):
    """Features of very different size, one of them constant; the second replica has few rows."""
    rng = np.random.default_rng(seed)
    context = rng.normal(size=(2, 500, WIDTH)) * [1.0, 1e6, 1e-6, 0.0] + [5.0, 1e7, 0.0, 3.3]
    return with_contexts(context, np.stack([np.ones(500), np.arange(500) < 30]).astype(float))


def test_features_have_mean_0_and_the_same_deviation(buffer):
    scaled = ContextScaling.of(buffer).scaled(buffer.context)
    assert scaled.dtype == np.float32
    for replica, rows in enumerate(buffer.filled):
        found = scaled[replica, :rows, :3].astype(float)
        np.testing.assert_allclose(found.mean(axis=0), 0.0, atol=1e-3)
        np.testing.assert_allclose(found.std(axis=0), 1 / np.sqrt(WIDTH), rtol=1e-3)


def test_a_constant_feature_is_0_even_if_it_changes_later(buffer):
    scaling = ContextScaling.of(buffer)
    assert np.all(scaling.scaled(buffer.context)[0, :, 3] == 0)
    assert np.all(scaling.scaled(np.full((2, 1, WIDTH), 1e9))[..., 3] == 0)


def test_what_is_far_out_is_cut_off(buffer):
    scaling = ContextScaling.of(buffer)
    limit = CUT_OFF / np.sqrt(WIDTH)
    for far in (1e30, -1e30):
        found = scaling.scaled(np.full((2, 1, WIDTH), far))[..., :3]
        np.testing.assert_allclose(found, np.sign(far) * limit, rtol=1e-6)


def test_contexts_on_the_unit_sphere_hardly_change(seed):
    context = np.random.default_rng(seed).normal(size=(1, 20_000, WIDTH))
    context /= np.linalg.norm(context, axis=-1, keepdims=True)
    found = ContextScaling.of(with_contexts(context, np.ones((1, 20_000)))).scaled(context)
    # Standard errors of the mean and of the deviation are below 0.004.
    assert np.abs(found - context).max() < 0.04


def test_deviations_up_to_the_largest_stay(seed):
    size = np.array([0.1, 0.7, 1.0, 30.0])
    context = np.random.default_rng(seed).normal(size=(1, 5000, WIDTH)) * size
    buffer = with_contexts(context, np.ones((1, 5000)))
    found = ContextScaling.of(buffer, 1.0).scaled(buffer.context)[0].std(axis=0)
    # At least 1 / √4; the standard error of a deviation is 1 % of it.
    np.testing.assert_allclose(found, [0.5, 0.7, 1.0, 1.0], rtol=0.05)
