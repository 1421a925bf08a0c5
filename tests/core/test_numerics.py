"""Draws of indices by their probabilities, one by one and in groups."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import raises_code
from scipy.optimize import brentq

from submax.core.numerics import decreasing_root, draw, draw_grouped, tally
from submax.testing.assertions import SMALLEST_P_VALUE, goodness_of_fit


class FixedUniform:
    def __init__(self, value):
        self.value = value

    def random(self, shape):
        return np.full(shape, self.value)


@pytest.mark.parametrize("rows", [1, 7])
@pytest.mark.parametrize("size", [1, 2, 5, 8, 9, 100])
def test_a_draw_is_the_first_index_whose_sum_exceeds_the_uniform_number(size, rows, seed):
    rng = np.random.default_rng((seed, size))
    probabilities = rng.dirichlet(np.full(size, 0.3), size=(2, rows))
    drawn = draw(probabilities, 7, np.random.default_rng(seed))
    uniform = np.random.default_rng(seed).random((2, 7))
    cumulated = np.broadcast_to(np.cumsum(probabilities, axis=-1), (2, 7, size))
    for place in np.ndindex(2, 7):
        rising = cumulated[place] / cumulated[place][-1]
        assert drawn[place] == np.searchsorted(rising, uniform[place], side="right")


@pytest.mark.parametrize("uniform", [0.0, 0.25, 0.5, 0.75, 1 - 2**-53])
def test_an_index_of_probability_zero_is_never_drawn(uniform):
    probabilities = np.array([[[0.0, 0.25, 0.0, 0.25, 0.0, 0.0, 0.5, 0.0, 0.0]]])
    drawn = draw(probabilities, 3, FixedUniform(uniform))
    assert np.all(probabilities[0, 0, drawn] > 0)


def test_the_largest_uniform_number_stays_within_rows_that_sum_below_one():
    probabilities = np.full((1, 1, 10), 0.1 - 1e-9)
    assert draw(probabilities, 1, FixedUniform(1 - 2**-53)).item() == 9


ALLOWED = 6.5
"""Standard errors: exceeded once in ten thousand million comparisons."""


@pytest.mark.parametrize("size", [1, 2, 3, 8, 33])
@pytest.mark.parametrize("count", [1, 2, 36, 37, 100])
def test_in_every_place_an_index_has_its_probability(size, count, seed):
    rng = np.random.default_rng((seed, size, count))
    probabilities = rng.dirichlet(np.full(size, 0.7))
    drawn = draw_grouped(np.broadcast_to(probabilities, (3000, 1, size)), count, rng)
    assert drawn.shape == (3000, count)
    assert drawn.dtype == np.int64
    # The rows of one replica depend on each other, those of different replicas do not.
    for place in {0, count // 2, count - 1}:
        assert goodness_of_fit(drawn[:, place], probabilities) > SMALLEST_P_VALUE


@given(
    weights=st.lists(st.integers(0, 50), min_size=1, max_size=12).filter(any),
    count=st.integers(0, 700),
    number=st.integers(0, 2**32),
)
def test_an_index_gets_its_share_of_the_lots_rounded_either_way(weights, count, number):
    probabilities = np.array(weights) / sum(weights)
    rng = np.random.default_rng(number)
    drawn = draw_grouped(probabilities[None, None], count, rng)[0]
    assert drawn.shape == (count,)
    met = np.bincount(drawn, minlength=len(weights))
    lots = min(count, round(6 * count**0.5))
    length = count / max(lots, 1)
    fewest = np.floor(lots * probabilities - 1e-9) * np.floor(length)
    most = np.ceil(lots * probabilities + 1e-9) * np.ceil(length)
    assert np.all((fewest <= met) & (met <= most))
    assert np.all(met[probabilities == 0] == 0)
    assert np.count_nonzero(met) <= lots


@pytest.mark.parametrize("count", [10, 200])
def test_neighbours_are_as_often_the_same_as_places_far_apart(count, seed):
    rng = np.random.default_rng((seed, count))
    probabilities = rng.dirichlet(np.ones(30))
    drawn = draw_grouped(np.broadcast_to(probabilities, (4000, 1, 30)), count, rng)
    near, far = drawn[:, 0] == drawn[:, 1], drawn[:, 0] == drawn[:, -1]
    difference = near.astype(np.float64) - far
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    assert abs(difference.mean()) <= ALLOWED * error


@pytest.mark.parametrize("how", [draw, draw_grouped])
def test_replicas_have_rows_of_their_own_and_may_draw_nothing(how, seed):
    rng = np.random.default_rng(seed)
    drawn = how(np.eye(4)[:, None, :], 50, rng)
    assert np.array_equal(drawn, np.repeat(np.arange(4)[:, None], 50, axis=1))
    assert how(np.full((3, 1, 2), 0.5), 0, rng).shape == (3, 0)


@pytest.mark.parametrize("count", [1, 36, 1000])
def test_rows_that_sum_to_one_but_for_rounding_are_drawn(count, seed):
    for off in (1 - 5e-7, 1 + 5e-7):
        drawn = draw_grouped(np.full((1, 1, 10), off / 10), count, np.random.default_rng(seed))
        assert drawn.shape == (1, count)


@pytest.mark.parametrize("row", [[0.5, 0.4], [0.5, 0.6], [np.nan, 1.0], [0.0, 0.0]])
def test_rows_that_do_not_sum_to_one_are_refused(row, seed):
    with raises_code("invalid-input"):
        draw_grouped(np.array([[row]]), 5, np.random.default_rng(seed))


# Roots of decreasing functions, and sums by index


def test_it_agrees_with_brent(seed):
    rng = np.random.default_rng(seed)
    wanted = rng.uniform(0.1, 50, size=40)
    # A sum that falls with the place, clipped at 0 term by term: no slope at its kinks.
    height = rng.uniform(0, 5, size=(40, 7))

    def function(place):
        left = np.maximum(height - place[:, None], 0.0)
        total = np.maximum(left.sum(axis=-1), 1e-9)
        return np.log(total / wanted), -(left > 0).sum(axis=-1) / total

    bounds = np.full(40, -60.0), np.full(40, 10.0)
    found = decreasing_root(function, np.zeros(40), *bounds, 1e-5)
    for row in range(40):
        expected = brentq(
            lambda place, row=row: np.maximum(height[row] - place, 0.0).sum() - wanted[row], -60, 10
        )
        assert found[row] == pytest.approx(expected, abs=1e-4)


def test_where_it_is_flat_or_rises_it_walks():
    def step(place):
        return np.where(place < 1.5, 1.0, -1.0), np.where(place < 1.5, 0.5, 0.0)

    found = decreasing_root(step, np.array([-7.0, 8.0]), np.full(2, -10.0), np.full(2, 10.0), 1e-9)
    np.testing.assert_allclose(found, 1.5, atol=1e-8)


def test_what_has_no_place_within_the_bounds_ends_at_them():
    def above(place):
        return 1.0 + 0 * place, 0 * place

    found = decreasing_root(above, np.array([0.0]), np.array([-3.0]), np.array([3.0]), 1e-6)
    assert found == pytest.approx(3.0)


@given(
    st.integers(1, 3),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=12),
    st.randoms(use_true_random=False),
)
def test_tally_is_a_sum_for_each_replica(replicas, pairs, random):
    rows = [random.sample(pairs, len(pairs)) for _ in range(replicas)]
    index = np.array([[pair[0] for pair in row] for row in rows], dtype=np.int64)
    weight = np.array([[pair[1] / 2 for pair in row] for row in rows], dtype=np.float64)
    expected = np.zeros((replicas, 5))
    for replica, row in enumerate(rows):
        for place, halves in row:
            expected[replica, place] += halves / 2
    found = tally(index.reshape(replicas, -1), weight.reshape(replicas, -1), 5)
    assert np.array_equal(found, expected)
    # A row that is not there may hold any index.
    absent = np.pad(index.reshape(replicas, -1), [(0, 0), (0, 2)], constant_values=(0, -7))
    assert np.array_equal(tally(absent, np.pad(weight, [(0, 0), (0, 2)]), 5), expected)
