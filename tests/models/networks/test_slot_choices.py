import itertools
import math

import numpy as np
import pytest
from scipy.special import softmax

from submax.models.networks.choices import (
    action_probabilities,
    choice_probabilities,
    draw_actions,
    joint_probabilities,
)
from submax.testing.assertions import SMALLEST_P_VALUE, goodness_of_fit

SIZES = ((1,), (4,), (1, 1), (2, 3), (3, 1, 2), (4, 2, 1, 3, 2))


def slots_of(row, sizes):
    """One row of all choices, as an array for each slot."""
    return np.split(row, np.cumsum(sizes)[:-1])


def probability(parts, action, sizes):
    """(1/Z) Σ_z Π_s p_zs, written out."""
    chosen = [
        [slot[choice] for slot, choice in zip(slots_of(part, sizes), action, strict=True)]
        for part in parts
    ]
    return np.mean([math.prod(one) for one in chosen])


def some_probabilities(sizes, shape, seed):
    rng = np.random.default_rng((seed, *sizes))
    logits = rng.normal(scale=2.0, size=(*shape, sum(sizes))).astype(np.float32)
    return choice_probabilities(logits, sizes)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("scale", [0.0, 1.0, 100.0, 1e30])
def test_choices_have_softmax_probabilities_within_their_slot(sizes, scale, seed):
    rng = np.random.default_rng((seed, *sizes))
    logits = (scale * rng.normal(size=(3, 2, sum(sizes)))).astype(np.float32)
    found = choice_probabilities(logits, sizes)
    assert found.shape == logits.shape
    for place in itertools.product(range(3), range(2)):
        slots = slots_of(logits[place].astype(float), sizes)
        expected = np.concatenate([softmax(slot) for slot in slots])
        np.testing.assert_allclose(found[place], expected, rtol=1e-4, atol=1e-12)


@pytest.mark.parametrize("gap", [300.0, 710.0, 1e4, 1e30])
def test_a_slot_far_below_the_others_keeps_its_probabilities(gap):
    step = np.log(3.0) if gap < 1e3 else 0.0
    logits = np.array([[gap, gap, 0.0, step], [0.0, step, -gap, -gap]], dtype=np.float32)
    share = 0.75 if step else 0.5
    expected = [[0.5, 0.5, 1 - share, share], [1 - share, share, 0.5, 0.5]]
    np.testing.assert_allclose(choice_probabilities(logits, (2, 2)), expected, rtol=1e-4)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_joint_probabilities_are_mean_products_in_the_order_of_the_listing(sizes, seed):
    probabilities = some_probabilities(sizes, (2, 3), seed)
    found = joint_probabilities(probabilities, sizes)
    assert found.shape == (2, math.prod(sizes))
    listing = list(itertools.product(*map(range, sizes)))
    for one in range(2):
        expected = [probability(probabilities[one], action, sizes) for action in listing]
        np.testing.assert_allclose(found[one], expected, rtol=1e-12)
        np.testing.assert_allclose(found[one].sum(), 1.0, rtol=1e-12)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("rows", [0, 3])
def test_probabilities_of_given_actions_are_mean_products(sizes, rows, seed):
    rng = np.random.default_rng((seed, *sizes))
    probabilities = some_probabilities(sizes, (2, 3, rows, 4), seed)
    action = rng.integers(sizes, size=(2, rows, 5, len(sizes)))
    found = action_probabilities(probabilities, action, sizes)
    assert found.shape == (2, rows, 3, 5)
    for replica, row, level, one in itertools.product(range(2), range(rows), range(3), range(5)):
        parts = probabilities[replica, level, row]
        expected = probability(parts, action[replica, row, one], sizes)
        np.testing.assert_allclose(found[replica, row, level, one], expected, rtol=1e-12)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("draws", [1, 3])
def test_draws_follow_the_joint_probabilities(sizes, draws, seed):
    rng = np.random.default_rng((seed, draws, *sizes))
    probabilities = some_probabilities(sizes, (2, 2, draws), seed)
    action = draw_actions(probabilities, 5000, sizes, rng)
    assert action.shape == (2, 2, 5000, len(sizes))
    assert np.all((action >= 0) & (action < np.array(sizes)))
    joint = joint_probabilities(probabilities, sizes)
    index = np.ravel_multi_index(tuple(np.moveaxis(action, -1, 0)), sizes)
    for place in itertools.product(range(2), range(2)):
        assert goodness_of_fit(index[place], joint[place]) > SMALLEST_P_VALUE


@pytest.mark.parametrize("uniform", [0.0, 0.25, 0.5, 1 - 2**-40])
def test_a_choice_of_probability_zero_is_never_drawn(uniform):
    class Fixed:
        def integers(self, high, size):
            return np.zeros(size, dtype=np.int64) + high - 1

        def random(self, shape):
            return np.full(shape, uniform)

    slots = np.array([0.0, 1.0, 0.0, 0.25, 0.0, 0.75, 0.0, 0.5, 0.5])
    probabilities = np.tile(slots, (3, 4, 5, 1))
    action = draw_actions(probabilities, 2, (3, 3, 3), Fixed())
    found = np.take_along_axis(slots.reshape(3, 3), action.reshape(-1, 3).T, axis=1)
    assert np.all(found > 0)
