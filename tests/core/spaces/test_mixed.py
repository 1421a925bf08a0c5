import math

import numpy as np
import pytest
from refusals import raises_code
from scipy import stats

from submax.core.errors import InputError
from submax.core.spaces.mixed import Mixed
from submax.testing.rules.goodness_of_fit import SMALLEST_P_VALUE, goodness_of_fit

SPACE = Mixed((3, 2), (-1.0,), (4.0,))


def test_choices_come_before_numbers():
    assert (SPACE.slots, SPACE.reals, SPACE.choices) == (3, 1, (3, 2))
    assert SPACE.dtype == np.float64


def test_uniform_draws_are_uniform_in_every_part(seed):
    drawn = SPACE.uniform((3, 700), np.random.default_rng(seed))
    assert drawn.shape == (3, 700, 3)
    assert drawn.dtype == SPACE.dtype
    assert SPACE.contains(drawn)
    joint = (2 * drawn[..., 0] + drawn[..., 1]).astype(np.int64)
    assert goodness_of_fit(joint, np.full(6, 1 / 6)) > SMALLEST_P_VALUE
    for choice in range(6):
        numbers = drawn[joint == choice, 2]
        assert stats.kstest(numbers, stats.uniform(-1, 5).cdf).pvalue > SMALLEST_P_VALUE


def test_the_measure_is_volume_times_joint_choices():
    assert math.isclose(SPACE.log_measure, math.log(6 * 5))


def test_scaled_leaves_the_choices_and_unscaled_is_its_reverse(seed):
    drawn = SPACE.uniform((2, 50), np.random.default_rng(seed))
    scaled = SPACE.scaled(drawn)
    assert np.array_equal(scaled[..., :2], drawn[..., :2])
    np.testing.assert_allclose(scaled[..., 2], (drawn[..., 2] + 1) / 5)
    np.testing.assert_allclose(SPACE.unscaled(scaled), drawn, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "stranger",
    [
        (3, 0, 0.0),
        (-1, 0, 0.0),
        (0, 2, 0.0),
        (0.5, 0, 0.0),
        (np.nan, 0, 0.0),
        (0, 0, 4.1),
        (0, 0, -1.1),
        (0, 0, np.nan),
        (0, 0),
        (0, 0, 0.0, 0.0),
    ],
    ids=str,
)
def test_strangers_are_not_contained(stranger):
    assert SPACE.contains(np.array([(0, 0, -1.0), (2, 1, 4.0)]))
    assert not SPACE.contains(np.array([stranger]))


def test_what_needs_a_list_is_refused():
    for ask in (lambda: SPACE.size, SPACE.listing, lambda: SPACE.index(np.zeros((1, 3)))):
        with raises_code("invalid-input"):
            ask()
    with raises_code("invalid-input"):
        SPACE.check_listable("someone")


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (((), (0.0,), (1.0,)), "sizes must be a tuple with at least one slot, not ()"),
        (((0,), (0.0,), (1.0,)), "the number of choices in a slot must be a whole number"),
        (((2,), (), ()), "one number for each dimension, not () and ()"),
        (((2,), (0.0,), (math.inf,)), "each of high must be a finite number, not inf"),
        (((2,), (1.0,), (0.0,)), "low must be below high, not 1.0 and 0.0"),
    ],
)
def test_bad_settings_are_refused(settings, sentence):
    with pytest.raises(InputError) as refusal:
        Mixed(*settings)
    assert sentence in str(refusal.value)
