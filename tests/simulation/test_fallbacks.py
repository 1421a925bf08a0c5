import csv
import io

import pytest
from rich.console import Console

from submax.cli.tables import print_sweep
from submax.simulation.experiment import cells, parse
from submax.simulation.results import CURVES, CellStore
from submax.simulation.runner import FinishedCell, run_cell, write_results

BATCH, REPLICAS = 60, 4

# Beside so much smoothing no count makes a difference: all levels have one conditioned policy, and
# what is left of their difference by rejection is nothing. That a replica sees but one level among
# the first 60 rewards has a chance below 1e-15.
OWN = """
observations = 150
replicas = 4
policies = [
    "random",
  {name = "alike", kind = "reward-conditioned", max_enumerated_actions = 1, estimator = "$smooth"},
    { name = "listed", kind = "reward-conditioned", estimator = "$smooth" },
]
[environment]
kind = "bernoulli"
arms = 3
alpha = 500
beta = 500
[delay]
kind = "batched-rewards"
size = 60
[define]
smooth = { kind = "counting", smoothing = 1e18 }
"""


@pytest.fixture(scope="module")
def finished(seed):
    every = cells(parse(OWN, "own").changed(seed=seed))
    return {cell.policy_name: FinishedCell(cell, run_cell(cell)) for cell in every}


def test_decisions_that_fall_back_are_counted(finished):
    taken = {name: one.result.fallbacks for name, one in finished.items()}
    assert taken == {"random": 0, "alike": (150 - BATCH) * REPLICAS, "listed": 0}


def test_the_count_is_stored(finished, tmp_path):
    store = CellStore(tmp_path, CURVES)
    for cell, result in finished.values():
        store.write(cell.key, result)
        assert store.read(cell.key).fallbacks == result.fallbacks


def test_the_summary_says_how_many(finished, tmp_path):
    write_results(tmp_path, list(finished.values()))
    with (tmp_path / "summary.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["policy"]: row["fallbacks"] for row in csv.DictReader(file)}
    assert rows == {"random": "0", "alike": "360", "listed": "0"}
    text = io.StringIO()
    print_sweep(parse(OWN, "own"), tmp_path, Console(file=text))
    (line,) = [line for line in text.getvalue().splitlines() if "360" in line]
    assert "alike" in line
