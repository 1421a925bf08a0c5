import numpy as np
import pytest

from submax.core.numerics.categorical import draw, log_prob_of
from submax.testing.rules.goodness_of_fit import SMALLEST_P_VALUE, goodness_of_fit

SIZES = (1, 2, 3, 4, 5, 8, 9, 100)


class FixedUniform:
    def __init__(self, value):
        self.value = value

    def random(self, shape):
        return np.full(shape, self.value)


@pytest.mark.parametrize("size", SIZES)
def test_one_shared_row_is_drawn_with_its_probabilities(size, seed):
    rng = np.random.default_rng((seed, size))
    probabilities = rng.dirichlet(np.ones(size), size=(3, 1))
    drawn = draw(probabilities, 5000, rng)
    assert drawn.shape == (3, 5000)
    for replica in range(3):
        p_value = goodness_of_fit(drawn[replica], probabilities[replica, 0])
        assert p_value > SMALLEST_P_VALUE


@pytest.mark.parametrize("size", SIZES)
def test_rows_of_their_own_are_drawn_once_each(size, seed):
    rng = np.random.default_rng((seed, size))
    rows = rng.dirichlet(np.ones(size), size=4)
    drawn = draw(np.tile(rows, (4000, 1, 1)), 4, rng)
    assert drawn.shape == (4000, 4)
    for row in range(4):
        assert goodness_of_fit(drawn[:, row], rows[row]) > SMALLEST_P_VALUE


@pytest.mark.parametrize("size", SIZES)
def test_a_draw_is_the_first_index_whose_sum_exceeds_the_uniform_number(size, seed):
    rng = np.random.default_rng((seed, size))
    probabilities = rng.dirichlet(np.full(size, 0.3), size=(2, 7))
    drawn = draw(probabilities, 7, np.random.default_rng(seed))
    uniform = np.random.default_rng(seed).random((2, 7))
    for replica in range(2):
        for row in range(7):
            cumulated = np.cumsum(probabilities[replica, row])
            cumulated /= cumulated[-1]
            expected = np.searchsorted(cumulated, uniform[replica, row], side="right")
            assert drawn[replica, row] == expected


@pytest.mark.parametrize("uniform", [0.0, 0.25, 0.5, 0.75, 1 - 2**-53])
def test_an_index_of_probability_zero_is_never_drawn(uniform):
    probabilities = np.array([[[0.0, 0.25, 0.0, 0.25, 0.0, 0.0, 0.5, 0.0, 0.0]]])
    drawn = draw(probabilities, 3, FixedUniform(uniform))
    assert np.all(probabilities[0, 0, drawn] > 0)


def test_the_largest_uniform_number_stays_within_rows_that_sum_below_one():
    probabilities = np.full((1, 1, 10), 0.1 - 1e-9)
    assert draw(probabilities, 1, FixedUniform(1 - 2**-53)).item() == 9


def test_replicas_have_rows_of_their_own(seed):
    probabilities = np.eye(4)[:, None, :]
    drawn = draw(probabilities, 50, np.random.default_rng(seed))
    assert np.array_equal(drawn, np.repeat(np.arange(4)[:, None], 50, axis=1))


@pytest.mark.parametrize("rows", [0, 1])
def test_no_draws_are_an_empty_array(rows, seed):
    probabilities = np.full((3, rows, 2), 0.5)
    assert draw(probabilities, 0, np.random.default_rng(seed)).shape == (3, 0)


def test_log_prob_of_looks_up_shared_rows_and_own_rows():
    shared = np.array([[[0.0, 0.25, 0.75]], [[0.5, 0.5, 0.0]]])
    index = np.array([[1, 2, 0], [2, 1, 0]])
    expected = np.array([[0.25, 0.75, 0.0], [0.0, 0.5, 0.5]])
    assert np.allclose(np.exp(log_prob_of(shared, index)), expected)
    own = np.repeat(shared, 3, axis=1)
    own[0, 2] = [1.0, 0.0, 0.0]
    expected[0, 2] = 1.0
    assert np.allclose(np.exp(log_prob_of(own, index)), expected)
