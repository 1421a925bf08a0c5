import numpy as np
import pytest
from scipy import optimize

from submax.strategies.batched_simplex import maximize


def programs(rng, count, variables, rows):
    """Random ones that are bounded: the rows of every column sum to zero."""
    matrix = rng.normal(size=(count, variables, rows))
    matrix -= matrix.mean(axis=-1, keepdims=True)
    limits = rng.random((count, rows)) * (rng.random((count, rows)) > 0.2)
    return rng.normal(size=(count, variables, 2)), matrix, limits


@pytest.mark.parametrize(("variables", "rows"), [(1, 2), (2, 5), (4, 9), (7, 64)])
def test_the_best_value_is_that_of_another_solver(seed, variables, rows):
    costs, matrix, limits = programs(np.random.default_rng(seed), 40, variables, rows)
    point, solved = maximize(costs, matrix, limits)
    assert solved.all()
    assert np.all(np.einsum("bkm,bk->bm", matrix, point) <= limits + 1e-11)
    for cost, columns, limit, found in zip(costs[..., 0], matrix, limits, point, strict=True):
        other = optimize.linprog(-cost, columns.T, limit, bounds=(None, None))
        assert cost @ found == pytest.approx(-other.fun, abs=1e-7)


def test_the_second_cost_decides_among_the_best_points(seed):
    costs, matrix, limits = programs(np.random.default_rng(seed), 50, 3, 8)
    swapped = costs.copy()
    swapped[..., 0], swapped[..., 1] = 0.0, costs[..., 0]
    assert np.allclose(
        maximize(swapped, matrix, limits).point, maximize(costs, matrix, limits).point
    )


def test_the_second_cost_chooses_an_end_of_the_best_edge():
    # −1 ≤ x ≤ 1 and −1 ≤ y ≤ 1: the best edge is x = 1.
    matrix = np.array([[[1.0, -1, 0, 0], [0, 0, 1.0, -1]]] * 2)
    costs = np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, -1.0]]])
    point, solved = maximize(costs, matrix, np.ones((2, 4)))
    assert solved.all()
    assert point.tolist() == [[1.0, 1.0], [1.0, -1.0]]


def test_an_unbounded_program_is_not_solved_and_the_others_are():
    matrix = np.array([[[1.0, -1.0], [0.0, 0.0]]] * 3)
    costs = np.zeros((3, 2, 2))
    costs[:, 0, 0] = 1.0
    costs[1, 1, 0] = 0.5
    point, solved = maximize(costs, matrix, np.ones((3, 2)))
    assert solved.tolist() == [True, False, True]
    assert point.tolist() == [[1.0, 0.0], [0.0, 0.0], [1.0, 0.0]]


def test_an_example_that_goes_in_circles_by_the_largest_cost():
    # Beale (1955): x ≥ 0 are the first four rows.
    rows = np.array([[0.25, -60, -0.04, 9], [0.5, -90, -0.02, 3], [0, 0, 1, 0]])
    matrix = np.concatenate([-np.eye(4), rows / np.abs(rows).max(axis=1, keepdims=True)])
    limits = np.array([0.0, 0, 0, 0, 0, 0, 1])
    costs = np.zeros((1, 4, 2))
    costs[0, :, 0] = [0.75, -150, 0.02, -6]
    point, solved = maximize(costs, matrix.T[None], limits[None])
    assert solved.all()
    assert np.allclose(point, [[0.04, 0, 1, 0]])
