"""Mixtures of conditional distributions: as a table, and by rejection."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submax.core.conditioning import (
    LIMIT,
    ConditionalDistribution,
    Table,
    mixture,
    rejection,
    unseen,
)
from submax.core.numerics import draw
from submax.testing.assertions import SMALLEST_P_VALUE, goodness_of_fit


def table_of(probabilities, prior):
    rows = np.array(probabilities, dtype=np.float64)
    levels = np.arange(rows.shape[-2], dtype=np.float64)
    prior = np.array(prior, dtype=np.float64)
    return Table(rows, levels, prior, np.zeros_like(prior))


@given(
    st.lists(st.tuples(*[st.integers(0, 9)] * 3), min_size=2, max_size=5),
    st.tuples(*[st.integers(-8, 8)] * 3),
)
def test_mixture_clips_and_normalizes_the_weighted_sum(columns, weights):
    counts = np.array(columns, dtype=np.float64).T + 0.25
    table = table_of(counts / counts.sum(axis=1, keepdims=True), [0.2, 0.3, 0.5])
    mass = [
        max(sum(w * p for w, p in zip(weights, row, strict=True)), 0.0)
        for row in table.probabilities.T
    ]
    mass = np.where(np.array(mass) > 1e-12, mass, 0.0)
    expected = mass / mass.sum() if mass.sum() > 0 else np.full(len(mass), 1 / len(mass))
    found = mixture(table, np.array(weights, dtype=np.float64))
    assert np.allclose(found, expected, atol=1e-9)


def test_what_is_zero_but_for_rounding_is_zero():
    rows = [[0.1 + 0.2, 0.3, 0.4], [0.3, 0.3, 0.4]]
    found = mixture(table_of(rows, [0.5, 0.5]), np.array([1.0, -1.0]))
    assert np.allclose(found, 1 / 3)


def test_a_level_never_seen_makes_the_policy_uniform_only_if_it_carries_weight():
    table = table_of([[0.7, 0.3], [0.2, 0.8]], [1.0, 0.0])
    assert np.allclose(mixture(table, np.array([0.0, 1.0])), 0.5)
    assert np.allclose(mixture(table, np.array([1.0, 0.0])), [0.7, 0.3])
    priors = np.array([[1.0, 0.0], [0.5, 0.5]])
    both = table_of([[[0.7, 0.3], [0.2, 0.8]]] * 2, priors)
    assert unseen(both, np.ones((2, 2))).tolist() == [True, False]


WEIGHTS = {
    "submax": [-1.0, 1.0],
    "clipped": [-0.8, 1.8],
    "clipped hard": [-9.0, 10.0],
    "two positive": [0.3, 0.7],
    "one alone": [0.0, 1.0],
    "three levels, one negative": [-1.0, 0.4, 0.9],
    "three levels, two negative": [-0.3, 2.0, -0.5],
    "three levels, all positive": [0.2, 0.5, 0.3],
    "three levels, two the same sign apart": [1.0, -1.2, 0.8],
}


class Listed(ConditionalDistribution):
    """Tables of probabilities ``[R, n, L, M]`` in the place of an estimator's belief."""

    def __init__(self, probabilities):
        self.probabilities = probabilities

    def rows(self, row):
        return Listed(np.take_along_axis(self.probabilities, row[..., None, None], axis=1))

    def sample(self, level, count, rng):
        shape = self.probabilities.shape[:2]
        rows = self.probabilities[:, :, level]
        flat = np.repeat(rows.reshape(1, shape[0] * shape[1], rows.shape[-1]), count, axis=1)
        return draw(flat, flat.shape[1], rng).reshape(*shape, count, 1)

    def prob(self, action):
        replicas, rows, levels, _ = self.probabilities.shape
        shape = (replicas, rows, levels, action.shape[2])
        index = np.broadcast_to(action[:, :, None, :, 0], shape)
        return np.take_along_axis(self.probabilities, index, axis=-1)

    def expected(self, weights):
        levels = self.probabilities.shape[2]
        prior = np.full(self.probabilities.shape[:3], 1 / levels)
        return mixture(Table(self.probabilities, np.arange(levels), prior, prior), weights)


def many_rows(tables, copies):
    """Each table ``[R, k, L, M]`` in many rows of its own: ``[R, copies * k, L, M]``."""
    return np.tile(tables, (1, copies, 1, 1))


@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize("size", [2, 7])
def test_draws_follow_the_listed_mixture(weights, size, seed):
    rng = np.random.default_rng((seed, size))
    tables = rng.dirichlet(np.ones(size), size=(2, 3, len(weights)))
    listed = Listed(many_rows(tables, 1500))
    every = np.broadcast_to(np.array(weights), listed.probabilities.shape[:3])
    action, exhausted = rejection(every, listed, rng)
    assert action.shape == (2, 4500, 1)
    expected = listed.expected(every)
    for replica in range(2):
        for one in range(3):
            drawn = ~exhausted[replica, one::3]
            found = action[replica, one::3, 0][drawn]
            assert goodness_of_fit(found, expected[replica, one]) > SMALLEST_P_VALUE
            # What remains of the positive part is the chance of every proposal.
            weight = np.array(weights)
            mixed = weight @ tables[replica, one]
            share = np.maximum(mixed, 0).sum() / np.maximum(weight, 0).sum()
            none = (1 - share) ** LIMIT
            limit = 1500 * none + 7 * np.sqrt(1500 * none) + 2
            assert (~drawn).sum() <= limit


def test_every_row_has_weights_of_its_own(seed):
    rng = np.random.default_rng(seed)
    tables = rng.dirichlet(np.ones(4), size=(2, 4, 3))
    own = np.array([[-1.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.2, 0.3, -0.1]])
    # One row more, in which nothing can be drawn.
    listed = Listed(np.concatenate([many_rows(tables[:, :3], 1500), tables[:, 3:]], axis=1))
    weights = np.concatenate([np.tile(own, (2, 1500, 1)), np.zeros((2, 1, 3))], axis=1)
    action, exhausted = rejection(weights, listed, rng)
    expected = listed.expected(weights)
    for replica in range(2):
        for one in range(3):
            found = action[replica, one:4500:3, 0][~exhausted[replica, one:4500:3]]
            assert len(found) > 1000
            assert goodness_of_fit(found, expected[replica, one]) > SMALLEST_P_VALUE
    assert np.all(exhausted[:, 4500])


def test_settled_rows_stay_as_they_are_while_others_go_on(seed):
    # Row i accepts action i alone, sooner or later; a mistake in the places would show.
    rng = np.random.default_rng(seed)
    size = 6
    probabilities = np.zeros((3, size, 2, size))
    for replica in range(3):
        for row in range(size):
            rare = 0.5 ** rng.integers(1, 9)
            other = (row + 1) % size
            probabilities[replica, row, 0, other] = 1.0
            probabilities[replica, row, 1, other] = 1 - rare
            probabilities[replica, row, 1, row] = rare
    listed = Listed(probabilities)
    weights = np.tile([-1.0, 1.0], (3, size, 1))
    action, exhausted = rejection(weights, listed, rng)
    expected = np.broadcast_to(np.arange(size), (3, size))
    # With one in 256 a row gives up with probability below 4e-4: 18 rows, so a few at most.
    assert exhausted.sum() <= 4
    assert np.array_equal(action[..., 0][~exhausted], expected[~exhausted])


@pytest.mark.parametrize("weights", [[-1.0, 1.0], [0.0, 0.0], [-1.0, -2.0], [-1.0, 0.0]])
def test_where_nothing_is_left_every_row_is_exhausted(weights, seed):
    rng = np.random.default_rng(seed)
    for size in (1, 5):
        # Both levels are equal.
        table = rng.dirichlet(np.ones(size), size=(2, 3, 1))
        listed = Listed(np.repeat(table, 2, axis=2))
        action, exhausted = rejection(np.tile(weights, (2, 3, 1)), listed, rng)
        assert action.shape == (2, 3, 1)
        assert np.all(exhausted)
