import math

import numpy as np
import pytest
from scipy import stats

from submax.core.errors import InputError
from submax.core.spaces.box import Box
from submax.testing.rules.goodness_of_fit import SMALLEST_P_VALUE

BOX = Box((0.0, -5.0), (10.0, -1.0))


def test_it_has_numbers_and_no_choices():
    assert BOX.slots == BOX.reals == 2
    assert BOX.choices == ()
    assert BOX.dtype == np.float64


def test_uniform_draws_are_uniform_in_every_dimension(seed):
    drawn = BOX.uniform((4, 500), np.random.default_rng(seed))
    assert drawn.shape == (4, 500, 2)
    assert drawn.dtype == BOX.dtype
    assert BOX.contains(drawn)
    for dimension in range(2):
        low, width = BOX.low[dimension], BOX.high[dimension] - BOX.low[dimension]
        fit = stats.kstest(drawn[..., dimension].ravel(), stats.uniform(low, width).cdf)
        assert fit.pvalue > SMALLEST_P_VALUE
    together = stats.pearsonr(*drawn.reshape(-1, 2).T)
    assert together.pvalue > SMALLEST_P_VALUE


def test_the_measure_is_the_volume():
    assert math.isclose(BOX.log_measure, math.log(10 * 4))
    assert Box((2.0,), (3.0,)).log_measure == 0


def test_scaled_goes_from_0_to_1_and_unscaled_back(seed):
    corners = np.array([BOX.low, BOX.high, (5.0, -2.0)])
    assert np.array_equal(BOX.scaled(corners), [[0.0, 0.0], [1.0, 1.0], [0.5, 0.75]])
    drawn = BOX.uniform((3, 100), np.random.default_rng(seed))
    before = drawn.copy()
    np.testing.assert_allclose(BOX.unscaled(BOX.scaled(drawn)), drawn, rtol=1e-12, atol=1e-12)
    assert np.array_equal(drawn, before)
    unit = np.random.default_rng(seed).random((3, 100, 2))
    np.testing.assert_allclose(BOX.scaled(BOX.unscaled(unit)), unit, rtol=1e-12, atol=1e-12)


def test_what_was_unscaled_is_inside_however_it_rounds():
    box = Box((-2.0,), (-0.9,))
    assert -2.0 + 1.0 * (-0.9 + 2.0) > -0.9
    assert box.contains(box.unscaled(np.array([[0.0], [1.0]])))


@pytest.mark.parametrize(
    "stranger",
    [(0.0, -0.9), (10.1, -2.0), (-0.1, -2.0), (np.nan, -2.0), (0.0, np.inf), (1.0,), (1, -2, 0)],
    ids=str,
)
def test_strangers_are_not_contained(stranger):
    assert BOX.contains(np.array([BOX.low, BOX.high]))
    assert not BOX.contains(np.array([stranger]))
    if len(stranger) == 2:
        assert not BOX.contains(np.array([BOX.low, stranger]))


def test_what_needs_a_list_is_refused():
    sentence = f"the actions of {BOX} cannot be listed or counted: use a space of arms or slots"
    for ask in (
        lambda: BOX.size,
        lambda: BOX.index(np.zeros((1, 2))),
        lambda: BOX.action(np.zeros(1, dtype=np.int64)),
        BOX.listing,
    ):
        with pytest.raises(InputError) as refusal:
            ask()
        assert str(refusal.value) == sentence
    with pytest.raises(InputError) as refusal:
        BOX.check_listable("someone")
    assert str(refusal.value) == (
        f"someone keeps a number for every joint action, and those of {BOX} cannot be listed"
    )


@pytest.mark.parametrize(
    ("low", "high", "sentence"),
    [
        ((), (), "one number for each dimension, not () and ()"),
        ((0.0,), (1.0, 2.0), "one number for each dimension, not (0.0,) and (1.0, 2"),
        ((0.0,), (math.inf,), "each of high must be a finite number, not inf"),
        ((-math.inf,), (0.0,), "each of low must be a finite number, not -inf"),
        ((math.nan,), (0.0,), "each of low must be a finite number, not nan"),
        ((1.0,), (1.0,), "low must be below high, not 1.0 and 1.0"),
        ((0.0,) * 40, (1e-9,) * 40, "use other units"),
        ((-1e308,), (1e308,), "use other units"),
        ((0.0, 2.0), (1.0, 1.0), "low must be below high, not 2.0 and 1.0"),
    ],
)
def test_bad_bounds_are_refused(low, high, sentence):
    with pytest.raises(InputError) as refusal:
        Box(low, high)
    assert sentence in str(refusal.value)
