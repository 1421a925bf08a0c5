"""Weights that earn the most, compared with other solvers."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import optimize

from submax import Table
from submax.estimators import Counting
from submax.strategies import Optimistic, Optimized
from submax.strategies.weighted import bounds
from submax.testing.problems import PROBLEMS

VALUES = st.tuples(st.integers(0, 9), st.integers(0, 9)).map(lambda pair: np.array(pair) / 10)


def weights_of_another_solver(rows, values):
    """Weights that sum to one, leave no probability negative and have the highest value."""
    program = optimize.linprog(
        -values,
        A_ub=-rows.T,
        b_ub=np.zeros(rows.shape[1]),
        A_eq=np.ones((1, len(rows))),
        b_eq=[1.0],
        bounds=(None, None),
    )
    assert program.status == 0
    return program.x


def test_optimized_by_hand(small_table):
    # The bound of action 0 is 0.6 / 0.4, that of action 2 is −0.1 / 0.3.
    assert np.allclose(bounds(*small_table.probabilities), (-1 / 3, 1.5))
    assert np.allclose(Optimized().probabilities(small_table), [0.0, 0.45, 0.55])
    worse = small_table._replace(values=np.array([0.2, 0.1]))
    assert np.allclose(Optimized().probabilities(worse), [11 / 15, 4 / 15, 0.0])


@given(data=st.data(), values=VALUES)
def test_it_is_the_linear_program_of_two_levels(tables, data, values):
    table = data.draw(tables)._replace(values=values)
    low, high = table.probabilities
    assume(values[0] != values[1] and not np.allclose(low, high, atol=1e-9))
    weights = weights_of_another_solver(table.probabilities, values)
    assert np.allclose(Optimized().weights(table), weights, rtol=1e-6, atol=1e-6)
    expected = weights @ table.probabilities
    assert np.allclose(Optimized().probabilities(table), expected, atol=1e-6)


def test_with_raw_counts_a_played_arm_without_reward_makes_it_optimistic(seed):
    problem = PROBLEMS[0]
    rng = np.random.default_rng(seed)
    estimator = Counting(smoothing=0.0)
    params = estimator.init(problem, 50, rng)
    counts = rng.integers(1, 20, size=(50, 2, 3)).astype(np.float64)
    counts[:, 1, 0] = 0.0
    params = params._replace(counts=counts)
    context = np.zeros((50, 1, 0))
    rows = estimator.belief(params, context).prob(problem.space.listing()[None, None])[:, 0]
    for row in rows:
        assert bounds(*row)[1] == 1.0
    better = np.tile([0.1, 0.2], (50, 1))
    prior = np.full((50, 2), 0.5)
    table = Table(rows, np.array([0.0, 1.0]), prior, better)
    assert np.array_equal(Optimized().probabilities(table), Optimistic().probabilities(table))


def test_rows_that_agree_but_for_rounding_count_as_equal(seed):
    counts = np.random.default_rng(seed).integers(1, 30, size=(500, 1, 4)).astype(np.float64)
    rows = np.concatenate([counts, 3 * counts, 7 * counts], axis=1)
    rows /= rows.sum(axis=-1, keepdims=True)
    prior = np.full((500, 2), 0.5)
    for other in (1, 2):
        pair = Table(
            rows[:, [0, other]], np.array([0.0, 1.0]), prior, np.tile([0.1, 0.2], (500, 1))
        )
        assert np.allclose(Optimized().probabilities(pair), rows[:, 0])
