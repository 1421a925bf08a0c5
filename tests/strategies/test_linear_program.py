import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import raises_code
from scipy import optimize

from submax.core.conditioning.table import Table
from submax.core.running.fallback import counted_fallbacks
from submax.strategies.linear_program import LinearProgram, UnsolvedWarning
from submax.strategies.optimized import Optimized
from submax.testing.check_strategy import random_table

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


def value_by_another_solver(table, place):
    rows, values = table.probabilities[place], table.values[place]
    levels, actions = rows.shape
    program = optimize.linprog(
        -values,
        A_ub=-rows.T,
        b_ub=np.zeros(actions),
        A_eq=np.ones((1, levels)),
        b_eq=[1.0],
        bounds=(None, None),
    )
    assert program.status == 0
    return -program.fun


def require_optimal(table):
    weights = LinearProgram().weights(table)
    mixed = np.einsum("bl,blm->bm", weights, table.probabilities)
    size = np.abs(weights).sum(axis=-1, keepdims=True)
    assert np.all(mixed >= -1e-12 * size)
    assert np.allclose(weights.sum(axis=-1), 1.0, atol=1e-12 * size.max())
    earned = np.einsum("bl,bl->b", weights, table.values)
    for place, value in enumerate(earned):
        assert value == pytest.approx(value_by_another_solver(table, place), abs=1e-6)


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


@pytest.mark.parametrize("actions", [1, 2, 3, 10, 64])
def test_with_two_levels_it_is_optimized(seed, actions):
    rng = np.random.default_rng(seed)
    table = random_table((500,), actions, rng)
    for values in (table.values, np.full((500, 2), 0.3)):
        same = table._replace(values=values)
        expected = Optimized().probabilities(same)
        assert np.allclose(LinearProgram().probabilities(same), expected, rtol=0, atol=1e-9)


@given(data=st.data(), first=st.integers(0, 9), second=st.integers(0, 9))
def test_with_two_levels_of_counts_it_is_optimized(tables, data, first, second):
    table = data.draw(tables)._replace(values=np.array([first, second]) / 10)
    expected = Optimized().probabilities(table)
    assert np.allclose(LinearProgram().probabilities(table), expected, rtol=0, atol=1e-9)


def test_equal_values_raise_the_higher_levels():
    rows = np.array([[0.5, 0.3, 0.2], [0.3, 0.4, 0.3], [0.2, 0.3, 0.5]])
    table = table_of(rows, np.full(3, 0.2))
    weights = LinearProgram().weights(table)
    program = optimize.linprog(
        -np.arange(3.0),
        A_ub=-rows.T,
        b_ub=np.zeros(3),
        A_eq=np.ones((1, 3)),
        b_eq=[1.0],
        bounds=(None, None),
    )
    assert weights @ np.arange(3.0) == pytest.approx(-program.fun)


def unbounded_rows():
    """The middle level is half of the others, and its value is not."""
    low, high = np.array([0.6, 0.3, 0.1]), np.array([0.2, 0.4, 0.4])
    return np.stack([low, (low + high) / 2, high])


def test_programs_without_a_solution_are_optimistic_and_counted():
    rows = np.stack([unbounded_rows()] * 3)
    values = np.array([[0.1, 0.3, 0.2], [0.1, 0.15, 0.2], [0.1, 0.1, 0.2]])
    with pytest.warns(
        UnsolvedWarning, match="2 of 3 linear programs had no reliable solution"
    ) as told:
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


def test_without_propensities_it_refuses(small_table):
    with raises_code("invalid-input"):
        LinearProgram().probabilities(small_table._replace(values=np.array([np.nan, 0.1])))


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
