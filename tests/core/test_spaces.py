"""Arms, and slots with choices: spaces whose actions can be listed."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import raises_code
from scipy import stats

from submax.core.spaces import Arms, Box, Slots
from submax.testing.assertions import SMALLEST_P_VALUE, goodness_of_fit


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4))
def test_numbering_follows_the_product_of_the_choices(sizes):
    space = Slots(tuple(sizes))
    expected = list(itertools.product(*map(range, sizes)))
    listed = space.action(np.arange(space.size))
    assert listed.tolist() == [list(action) for action in expected]
    assert space.index(listed).tolist() == list(range(len(expected)))
    assert space.slots == len(sizes)


@pytest.mark.parametrize("count", [0, True, "3"])
def test_anything_but_a_whole_number_of_choices_is_refused(count):
    with raises_code("invalid-input", "arms"):
        Arms(count)
    for sizes in ((2, count), ()):
        with raises_code("invalid-input"):
            Slots(sizes)
        if sizes:
            with raises_code("invalid-input"):
                Box((0.0,), (1.0,), sizes)


def test_a_space_that_is_too_large_to_be_listed_says_so():
    with raises_code("invalid-input"):
        Slots((1000, 2000)).check_listable("my policy")
    Slots((1024, 1024)).check_listable("my policy")


# Numbers within bounds, with choices beside them or without: spaces that cannot be listed

BOX = Box((0.0, -5.0), (10.0, -1.0))
MIXED = Box((-1.0,), (4.0,), (3, 2))
both = pytest.mark.parametrize("space", [BOX, MIXED], ids=repr)


@both
def test_uniform_draws_are_uniform_in_every_part(space, seed):
    drawn = space.uniform((4, 600), np.random.default_rng(seed))
    assert drawn.shape == (4, 600, space.slots)
    assert drawn.dtype == space.dtype == np.float64
    assert space.contains(drawn)
    choices = len(space.choices)
    joint = np.zeros(drawn.shape[:2], dtype=np.int64)
    for slot, size in enumerate(space.choices):
        joint = joint * size + drawn[..., slot].astype(np.int64)
    count = math.prod(space.choices)
    assert goodness_of_fit(joint, np.full(count, 1 / count)) > SMALLEST_P_VALUE
    for choice in range(count):
        numbers = space.scaled(drawn[joint == choice])[:, choices:].T
        for number in numbers:
            assert stats.kstest(number, stats.uniform.cdf).pvalue > SMALLEST_P_VALUE
        if space.reals == 2:
            assert stats.pearsonr(*numbers).pvalue > SMALLEST_P_VALUE


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
        *((Arms(4), stranger) for stranger in ((4,), (-1,), (0, 0))),
        *((Slots((2, 3)), stranger) for stranger in ((2, 0), (0, 3), (-1, 0), (0,))),
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
    low, high = getattr(space, "low", ()), getattr(space, "high", ())
    ends = [(*(0 for _ in space.choices), *low), (*(1 for _ in space.choices), *high)]
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
        Box(low, high, (2,))
