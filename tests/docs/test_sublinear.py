"""The script of docs/research that measures how the expected regret grows."""

import csv
import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pytest

from submax.policies import make_policy
from submax.simulation.simulate import simulate

FOLDER = Path(__file__).parents[2] / "docs" / "research"


@pytest.fixture
def sublinear(monkeypatch):
    specification = importlib.util.spec_from_file_location("sublinear", FOLDER / "sublinear.py")
    module = importlib.util.module_from_spec(specification)
    monkeypatch.setitem(sys.modules, "sublinear", module)
    specification.loader.exec_module(module)
    return module


def test_the_worlds_are_those_of_the_simulation(sublinear, seed):
    environment = sublinear.PROBLEMS["K = 10, Beta(1, 9)"]
    trace = simulate(
        environment, make_policy("random"), observations=30, replicas=5, seed=seed, points=None
    )
    values = sublinear.worlds(environment, 5, seed)
    taken = np.take_along_axis(values, trace.actions[..., 0], axis=1)
    regret = np.cumsum(values.max(axis=1, keepdims=True) - taken, axis=1)
    assert np.allclose(trace.accumulated_regret, regret)


def test_the_constant_is_that_of_lai_and_robbins(sublinear):
    found = sublinear.lower_bound_constant(np.array([[0.5, 0.25, 0.25], [0.5, 0.5, 0.0]]))
    quarter = 0.25 * math.log(0.5) + 0.75 * math.log(1.5)
    assert found == pytest.approx([2 * 0.25 / quarter, 0.5 / math.log(2)])


def test_a_cell_has_three_rows_and_the_slope_between_them(sublinear, seed):
    cell = sublinear.Cell("K = 2, 0.5 and 0.45", "imed", 10, 1000, 4)
    rows = sublinear.rows(cell, seed)
    assert [row.t for row in rows] == [10, 100, 1000]
    growth = float(rows[2].mean_regret) - float(rows[1].mean_regret)
    # Regret has one decimal, the slope two.
    assert float(rows[2].slope) == pytest.approx(growth / math.log(10), abs=0.1 / math.log(10))


def test_the_file_has_all_cells_of_the_script(sublinear):
    with (FOLDER / "sublinear.csv").open(newline="") as file:
        found = [
            (row["problem"], row["policy"], int(row["batch"]), int(row["replicas"]), int(row["t"]))
            for row in csv.DictReader(file)
        ]
    expected = [
        (cell.problem, cell.policy, cell.batch, cell.replicas, cell.observations // share)
        for cell in sublinear.cells()
        for share in (100, 10, 1)
    ]
    assert found == expected


def test_a_cell_that_is_run_again_replaces_its_rows(sublinear, tmp_path, monkeypatch):
    monkeypatch.setattr(sublinear, "FILE", tmp_path / "sublinear.csv")
    few = [
        sublinear.Cell("K = 2, 0.5 and 0.45", "imed", batch, 1000, replicas)
        for batch, replicas in ((1, 2), (10, 2), (1, 3))
    ]
    for cell in few:
        sublinear._replace(sublinear.rows(cell))
    with sublinear.FILE.open(newline="") as file:
        found = [(row["batch"], row["replicas"]) for row in csv.DictReader(file)]
    assert found == [("1", "3")] * 3 + [("10", "2")] * 3
