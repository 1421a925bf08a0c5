"""Roots of decreasing functions, and sums by index."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from submax.core.numerics import decreasing_root, tally


def bent(root, bend):
    """Falls through 0 at ``root``, steeply or nearly flat, with slopes of its own."""

    def function(place):
        away = place - root
        return -np.sinh(bend * away) - away, -bend * np.cosh(bend * away) - 1

    return function


@pytest.mark.parametrize("bend", [0.01, 1.0, 3.0])
def test_it_finds_the_place_from_anywhere(bend, seed):
    rng = np.random.default_rng(seed)
    root, start = rng.uniform(-9, 9, size=(2, 200))
    bound = np.full(200, 10.0)
    found = decreasing_root(bent(root, bend), start, -bound, bound, 1e-4)
    np.testing.assert_allclose(found, root, atol=1e-6)


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
