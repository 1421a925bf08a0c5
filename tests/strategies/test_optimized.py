"""Weights that earn the most, compared with other solvers."""

import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from refusals import raises_code
from scipy import optimize

from submax import Table
from submax.core.errors import counted_fallbacks
from submax.estimators import Counting
from submax.research.beyond.linear_program import UnsolvedWarning, best_point
from submax.strategies import LinearProgram, Optimistic, Optimized
from submax.strategies.weighted import bounds
from submax.testing.problems import PROBLEMS
from submax.testing.strategies import hostile_tables, random_table

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


@given(data=st.data())
def test_bounds_are_where_the_first_probability_turns_negative(tables, data):
    low, high = data.draw(tables).probabilities
    assume(not np.allclose(low, high, atol=1e-9))
    lowest, highest = bounds(low, high)
    assert lowest <= 0
    assert highest >= 1
    for border, outwards in ((lowest, -1e-4), (highest, 1e-4)):
        assert np.min((1 - border) * low + border * high) > -1e-9
        beyond = border + outwards
        assert np.min((1 - beyond) * low + beyond * high) < 0


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
        assert bounds(*row).highest == 1.0
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


SIZES = [(2, 1), (2, 64), (3, 3), (4, 9), (5, 64), (8, 20), (8, 64)]
DEPENDENT = [(3, 2), (5, 3), (8, 1), (8, 2), (8, 5)]


def random_rows(rng, count, levels, actions, sparse):
    rows = rng.dirichlet(np.ones(actions), size=(count, levels))
    if sparse:
        kept = rng.random(rows.shape) > 0.4
        # One action is always possible, so that every row is a policy.
        kept[..., 0] = True
        rows = rows * kept
    return rows / rows.sum(axis=-1, keepdims=True)


def table_of(rows, values):
    prior = np.full(values.shape, 1 / values.shape[-1])
    return Table(rows, np.arange(values.shape[-1], dtype=np.float64), prior, values)


def consistent_table(rng, count, levels, actions, sparse):
    """Values are the mean reward of the conditioned policies, so that no weight is unbounded."""
    rows = random_rows(rng, count, levels, actions, sparse)
    return table_of(rows, np.einsum("blm,bm->bl", rows, rng.random((count, actions))))


def require_optimal(table):
    weights = LinearProgram().weights(table)
    mixed = np.einsum("bl,blm->bm", weights, table.probabilities)
    size = np.abs(weights).sum(axis=-1, keepdims=True)
    # The solver allows 1e-10 beyond a limit.
    assert np.all(mixed >= -2e-10 * size)
    assert np.allclose(weights.sum(axis=-1), 1.0, atol=1e-12 * size.max())
    earned = np.einsum("bl,bl->b", weights, table.values)
    for rows, values, found in zip(table.probabilities, table.values, earned, strict=True):
        expected = weights_of_another_solver(rows, values) @ values
        assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("levels", "actions"), [*SIZES, *DEPENDENT])
def test_the_value_is_that_of_another_solver(seed, levels, actions, sparse):
    rng = np.random.default_rng(seed)
    require_optimal(consistent_table(rng, 20, levels, actions, sparse))


@pytest.mark.parametrize(("levels", "actions"), [(3, 10), (5, 20), (8, 64)])
def test_values_need_not_be_those_of_any_reward(seed, levels, actions):
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, 20, levels, actions, sparse=False)
    require_optimal(table_of(rows, rng.random((20, levels))))


def test_with_two_levels_it_is_optimized_on_random_and_hostile_tables(seed):
    rng = np.random.default_rng(seed)
    drawn = [random_table((500,), actions, rng) for actions in (1, 2, 3, 10, 64)]
    equal = [table._replace(values=np.full((500, 2), 0.3)) for table in drawn]
    for table in (*drawn, *equal, *hostile_tables()):
        expected = Optimized().probabilities(table)
        assert np.allclose(LinearProgram().probabilities(table), expected, rtol=0, atol=1e-9)


def test_equal_values_raise_the_higher_levels():
    rows = np.array([[0.5, 0.3, 0.2], [0.3, 0.4, 0.3], [0.2, 0.3, 0.5]])
    weights, levels = LinearProgram().weights(table_of(rows, np.full(3, 0.2))), np.arange(3.0)
    expected = weights_of_another_solver(rows, levels) @ levels
    assert weights @ levels == pytest.approx(expected)


def unbounded_rows():
    """The middle level is half of the others, and its value is not."""
    low, high = np.array([0.6, 0.3, 0.1]), np.array([0.2, 0.4, 0.4])
    return np.stack([low, (low + high) / 2, high])


def test_programs_without_a_solution_are_optimistic_and_counted():
    rows = np.stack([unbounded_rows()] * 3)
    values = np.array([[0.1, 0.3, 0.2], [0.1, 0.15, 0.2], [0.1, 0.1, 0.2]])
    with pytest.warns(UnsolvedWarning) as told:
        weights = LinearProgram().weights(table_of(rows, values))
    assert len(told) == 1
    assert told[0].message.decisions == 2
    assert weights[[0, 2]].tolist() == [[0.0, 0.0, 1.0]] * 2
    assert weights[1] @ values[1] == pytest.approx(0.25)


def test_levels_never_observed_are_left_out(seed):
    rng = np.random.default_rng(seed)
    table = consistent_table(rng, 30, 5, 8, sparse=False)
    prior = np.tile([0.0, 0.5, 0.2, 0.3, 0.0], (30, 1))
    weights = LinearProgram().weights(table._replace(prior=prior))
    assert not weights[:, [0, 4]].any()
    kept = table_of(table.probabilities[:, 1:4], table.values[:, 1:4])
    assert np.allclose(weights[:, 1:4], LinearProgram().weights(kept))


@pytest.mark.parametrize("observed", [(), (0,), (1,), (2,)])
def test_with_fewer_than_two_levels_observed_it_is_optimized(seed, observed):
    table = consistent_table(np.random.default_rng(seed), 10, 3, 4, sparse=False)
    prior = np.zeros((10, 3))
    prior[:, list(observed)] = 1.0
    table = table._replace(prior=prior)
    assert np.array_equal(LinearProgram().weights(table), Optimized().weights(table))
    assert np.allclose(LinearProgram().probabilities(table), 0.25)


def test_values_of_any_size_give_the_same_policy(seed):
    table = consistent_table(np.random.default_rng(seed), 50, 4, 9, sparse=False)
    expected = LinearProgram().probabilities(table)
    for factor in (1e-200, 1e200):
        scaled = table._replace(values=table.values * factor)
        assert np.allclose(LinearProgram().probabilities(scaled), expected, rtol=0, atol=1e-9)


def test_tiny_probabilities_are_never_a_reason_for_nan(seed):
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(30, 0.02), size=(300, 6))
    table = table_of(rows, np.einsum("blm,bm->bl", rows, rng.random((300, 30))))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", UnsolvedWarning)
        weights = LinearProgram().weights(table)
    # Rounding may leave no solution, and should rarely: in 10.2 of 300 tables on average over 40
    # seeds, with the standard deviation 3.4.
    assert sum(each.message.decisions for each in told) <= 10.2 + 6 * 3.4
    assert np.isfinite(weights).all()
    assert np.all(np.einsum("bl,bl->b", weights, table.values) >= table.values[:, -1] - 1e-9)


@pytest.mark.parametrize("strategy", [Optimized(), LinearProgram()], ids=repr)
def test_without_propensities_it_refuses(strategy, small_table):
    with raises_code("invalid-input"):
        strategy.probabilities(small_table._replace(values=np.array([np.nan, 0.1])))


def test_with_more_levels_than_actions_some_of_them_are_enough(seed):
    rng = np.random.default_rng(seed)
    table = Table(
        probabilities=rng.dirichlet(np.ones(4), size=(200, 5)),
        levels=np.tile(np.arange(5.0), (200, 1)),
        prior=np.full((200, 5), 0.2),
        # Values over all contexts, which do not depend on one another as the rows do.
        values=np.tile(rng.random(5), (200, 1)),
    )
    with counted_fallbacks() as counts:
        weights = LinearProgram().weights(table)
    assert counts == []
    mixed = np.einsum("bl,blm->bm", weights, table.probabilities)
    assert mixed.min() >= -1e-9
    assert np.all((weights * table.values).sum(axis=1) >= table.values[:, -1] - 1e-9)
    assert np.all((weights != 0).sum(axis=1) <= 4)


def test_the_second_gain_decides_among_the_best_points_of_a_program():
    # −1 ≤ x ≤ 1 and −1 ≤ y ≤ 1: the best edge is x = 1.
    square, limits = np.array([[1.0, 0], [-1, 0], [0, 1], [0, -1]]), np.ones(4)
    for second in (1.0, -1.0):
        found = best_point(np.array([1.0, 0.0]), np.array([0.0, second]), square, limits)
        assert found == pytest.approx([1.0, second])
    # Without bounds on y, no second gain decides; a gain along y has no best point.
    found = best_point(np.array([1.0, 0.0]), np.array([0.0, 1.0]), square[:2], limits[:2])
    assert found[0] == pytest.approx(1.0)
    assert best_point(np.array([1.0, 0.5]), np.zeros(2), square[:2], limits[:2]) is None
