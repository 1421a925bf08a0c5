"""Numbers within bounds, with choices beside them or without: spaces that cannot be listed."""

import math

import numpy as np
import pytest
from refusals import raises_code
from scipy import stats

from submax.core.spaces.box import Box
from submax.core.spaces.mixed import Mixed
from submax.testing.rules.goodness_of_fit import SMALLEST_P_VALUE, goodness_of_fit

BOX = Box((0.0, -5.0), (10.0, -1.0))
MIXED = Mixed((3, 2), (-1.0,), (4.0,))
both = pytest.mark.parametrize("space", [BOX, MIXED], ids=repr)


def test_choices_come_before_numbers():
    assert (BOX.slots, BOX.reals, BOX.choices) == (2, 2, ())
    assert (MIXED.slots, MIXED.reals, MIXED.choices) == (3, 1, (3, 2))


def test_uniform_draws_of_a_box_are_uniform_in_every_dimension(seed):
    drawn = BOX.uniform((4, 500), np.random.default_rng(seed))
    assert drawn.shape == (4, 500, 2)
    assert drawn.dtype == BOX.dtype == np.float64
    assert BOX.contains(drawn)
    for dimension in range(2):
        low, width = BOX.low[dimension], BOX.high[dimension] - BOX.low[dimension]
        fit = stats.kstest(drawn[..., dimension].ravel(), stats.uniform(low, width).cdf)
        assert fit.pvalue > SMALLEST_P_VALUE
    together = stats.pearsonr(*drawn.reshape(-1, 2).T)
    assert together.pvalue > SMALLEST_P_VALUE


def test_uniform_draws_of_a_mixed_space_are_uniform_in_every_part(seed):
    drawn = MIXED.uniform((3, 700), np.random.default_rng(seed))
    assert drawn.shape == (3, 700, 3)
    assert drawn.dtype == MIXED.dtype == np.float64
    assert MIXED.contains(drawn)
    joint = (2 * drawn[..., 0] + drawn[..., 1]).astype(np.int64)
    assert goodness_of_fit(joint, np.full(6, 1 / 6)) > SMALLEST_P_VALUE
    for choice in range(6):
        numbers = drawn[joint == choice, 2]
        assert stats.kstest(numbers, stats.uniform(-1, 5).cdf).pvalue > SMALLEST_P_VALUE


def test_the_measure_is_volume_times_joint_choices():
    assert math.isclose(BOX.log_measure, math.log(10 * 4))
    assert Box((2.0,), (3.0,)).log_measure == 0
    assert math.isclose(MIXED.log_measure, math.log(6 * 5))


@both
def test_scaled_numbers_go_from_0_to_1_and_unscaled_is_the_reverse(space, seed):
    drawn = space.uniform((3, 100), np.random.default_rng(seed))
    before, choices = drawn.copy(), len(space.choices)
    scaled = space.scaled(drawn)
    assert np.array_equal(scaled[..., :choices], drawn[..., :choices])
    low, high = np.array(space.low), np.array(space.high)
    np.testing.assert_allclose(scaled[..., choices:], (drawn[..., choices:] - low) / (high - low))
    np.testing.assert_allclose(space.unscaled(scaled), drawn, rtol=1e-12, atol=1e-12)
    assert np.array_equal(drawn, before)


def test_what_was_unscaled_is_inside_however_it_rounds():
    box = Box((-2.0,), (-0.9,))
    assert -2.0 + 1.0 * (-0.9 + 2.0) > -0.9
    assert box.contains(box.unscaled(np.array([[0.0], [1.0]])))


@pytest.mark.parametrize(
    ("space", "stranger"),
    [
        (BOX, (0.0, -0.9)),
        (BOX, (-0.1, -2.0)),
        (BOX, (np.nan, -2.0)),
        (BOX, (0.0, np.inf)),
        (BOX, (1.0,)),
        (MIXED, (3, 0, 0.0)),
        (MIXED, (-1, 0, 0.0)),
        (MIXED, (0.5, 0, 0.0)),
        (MIXED, (np.nan, 0, 0.0)),
        (MIXED, (0, 0, 4.1)),
        (MIXED, (0, 0)),
    ],
    ids=str,
)
def test_strangers_are_not_contained(space, stranger):
    ends = [(*(0 for _ in space.choices), *space.low), (*(1 for _ in space.choices), *space.high)]
    assert space.contains(np.array(ends))
    assert not space.contains(np.array([stranger]))
    if len(stranger) == space.slots:
        assert not space.contains(np.array([*ends, stranger]))


@both
def test_what_needs_a_list_is_refused(space):
    for ask in (
        lambda: space.size,
        lambda: space.index(np.zeros((1, space.slots))),
        lambda: space.action(np.zeros(1, dtype=np.int64)),
        space.listing,
        lambda: space.check_listable("someone"),
    ):
        with raises_code("invalid-input"):
            ask()


@pytest.mark.parametrize(
    ("low", "high", "parameter"),
    [
        ((), (), "low"),
        ((0.0,), (1.0, 2.0), "low"),
        ((0.0,), (math.inf,), None),
        ((math.nan,), (0.0,), None),
        ((1.0,), (1.0,), "low"),
        ((0.0, 2.0), (1.0, 1.0), "low"),
        ((0.0,) * 40, (1e-9,) * 40, "high"),
        ((-1e308,), (1e308,), "high"),
    ],
)
def test_bad_bounds_are_refused(low, high, parameter):
    with raises_code("invalid-input", parameter):
        Box(low, high)
    with raises_code("invalid-input", parameter):
        Mixed((2,), low, high)


@pytest.mark.parametrize("sizes", [(), (0,)])
def test_bad_choices_are_refused(sizes):
    with raises_code("invalid-input"):
        Mixed(sizes, (0.0,), (1.0,))
