import itertools

import numpy as np
import pytest

from submax.models.regression.slot_map import SlotMap
from submax.models.regression.standardization import FARTHEST

SIZES = (3, 2, 4)


def map_of(seed, width, pairs=True, most=10_000):
    context = np.random.default_rng((seed, 5)).normal(2.0, 3.0, size=(50, width))
    return SlotMap.of(SIZES, context, np.ones(50), most, pairs), context


def by_hand(slot_map, context, action):
    """The features of one row, effect by effect."""
    z = np.clip((context - slot_map.shift) * slot_map.scale, -FARTHEST, FARTHEST)
    choices = [float(action[slot] == one) for slot, size in enumerate(SIZES) for one in range(size)]
    row = [1.0, *z, *choices, *(choice * number for choice in choices for number in z)]
    if slot_map.pairs:
        for one, other in itertools.combinations(range(len(SIZES)), 2):
            for mine, yours in itertools.product(range(SIZES[one]), range(SIZES[other])):
                row.append(float((action[one], action[other]) == (mine, yours)))
    return row


@pytest.mark.parametrize("pairs", [True, False])
@pytest.mark.parametrize("width", [0, 2])
def test_rows_are_those_written_out_by_hand(width, pairs, seed):
    slot_map, context = map_of(seed, width, pairs)
    rng = np.random.default_rng(seed)
    action = rng.integers(SIZES, size=(50, 3))
    context[0] = 1e6
    found = slot_map.rows(context, action).toarray()
    expected = [by_hand(slot_map, *row) for row in zip(context, action, strict=True)]
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert found.shape[1] == slot_map.width == len(slot_map.groups)


@pytest.mark.parametrize("width", [0, 2])
def test_effects_of_choices_and_pairs_add_up_to_the_product_with_the_features(width, seed):
    slot_map, context = map_of(seed, width)
    rng = np.random.default_rng(seed)
    coefficients, action = rng.normal(size=(4, slot_map.width)), rng.integers(SIZES, size=(50, 3))
    expected = slot_map.rows(context, action) @ coefficients.T
    z = slot_map.standardized(context)
    total = coefficients[:, 0] + z @ coefficients[:, 1 : 1 + width].T
    row = np.arange(50)
    for slot, effects in enumerate(slot_map.choice_effects(coefficients, context)):
        total = total + effects[row, :, action[:, slot]]
    for (one, other), effects in slot_map.pair_effects(coefficients).items():
        total = total + effects[:, action[:, one], action[:, other]].T
    np.testing.assert_allclose(total, expected, atol=1e-10)


def test_pairs_are_left_out_beyond_the_largest_number_of_effects(seed):
    whole, _ = map_of(seed, 2)
    assert map_of(seed, 2, most=whole.width)[0].pairs
    smaller, _ = map_of(seed, 2, most=whole.width - 1)
    assert not smaller.pairs
    assert smaller.width == whole.first_pair
    assert smaller.pair_effects(np.zeros((1, smaller.width))) == {}
