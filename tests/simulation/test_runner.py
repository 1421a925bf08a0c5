import csv
import io
import multiprocessing
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow.parquet as pq
import pytest
from refusals import raises_code
from rich.console import Console

from submax import BatchedRewards, Bernoulli, make_policy, simulate
from submax.cli.running import print_sweep
from submax.simulation.experiment import cells, parse
from submax.simulation.results import (
    CellStore,
    ResultTable,
    late_slope,
    write_results,
)
from submax.simulation.runner import SINGLE_THREAD, local_executor, run_cell, run_study, sweep


def result(number):
    return {"regret": [number + 0.5, float("inf")], "summary": {"policy": "täglich", "final": None}}


@pytest.mark.parametrize("damage", ["cut", "empty", "partial"])
def test_damaged_cells_are_not_finished(tmp_path, damage):
    store = CellStore(tmp_path)
    assert not store.finished("a")
    store.write("a", result(3))
    assert store.read("a") == result(3)
    assert [file.name for file in tmp_path.iterdir()] == ["a.msgpack"]
    path = tmp_path / "a.msgpack"
    whole = path.read_bytes()
    if damage == "partial":
        path.rename(tmp_path / "a.partial")
    else:
        path.write_bytes(whole[: len(whole) // 2] if damage == "cut" else b"")
    assert not store.finished("a")


def test_error_in_one_task_keeps_the_others_and_cancels_the_rest(tmp_path):
    store, ran = CellStore(tmp_path), []

    def run(task: int):
        ran.append(task)
        if task == 2:
            raise RuntimeError("broken cell")
        time.sleep(0.005)
        return result(task)

    tasks = {str(number): number for number in range(1000)}
    with ThreadPoolExecutor(1) as executor, pytest.raises(RuntimeError):
        sweep(tasks, run, store, executor, lambda key, _: None)
    assert store.finished("0")
    assert not store.finished("2")
    assert len(ran) < 1000


def test_cells_under_way_are_stored_when_a_sweep_is_interrupted(tmp_path):
    begun, release = threading.Event(), threading.Event()

    def run(number: int):
        if number == 1:
            begun.set()
            release.wait(60)
        else:
            # A cell that no thread has taken up yet would be left out, rightly.
            begun.wait(60)
        return result(number)

    def interrupt(key: str, found: object) -> None:
        release.set()
        raise KeyboardInterrupt

    store = CellStore(tmp_path)
    with ThreadPoolExecutor(2) as executor, pytest.raises(KeyboardInterrupt):
        sweep({"0": 0, "1": 1}, run, store, executor, interrupt)
    assert store.finished("0")
    assert store.finished("1")


def test_the_late_slope_is_the_regret_per_decision_in_the_last_tenth(seed):
    settings = {"observations": 200, "replicas": 3, "delay": BatchedRewards(20), "seed": seed}
    trace = simulate(Bernoulli(4), make_policy("rcp-submax"), **settings)
    late = (trace.steps >= 180).nonzero()[0]
    regret = trace.accumulated_regret[:, late]
    slope = (regret[:, -1] - regret[:, 0]) / (trace.steps[late[-1]] - trace.steps[late[0]])
    assert trace.steps[late[0]] == 180
    np.testing.assert_allclose(late_slope(trace), slope)
    single = simulate(Bernoulli(4), make_policy("random"), observations=1, replicas=3)
    np.testing.assert_array_equal(late_slope(single), np.zeros(3))


# Sweeps as a Python call, in parts and with several processes on one folder

FILE = """
observations = 40
replicas = 3
points = 5
policies = ["random", "ucb1", "rcp-submax"]
[environment]
kind = "bernoulli"
arms = [2, 3]
"""


def results(folder):
    return pq.read_table(folder / "results.parquet").to_pylist()


def _run_part(file, out, arms, both_ready):
    both_ready.wait(60)
    run_study(file, out, only=[f"arms={arms}"])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return run_study(parse(FILE, "tiny"), tmp_path_factory.mktemp("whole"))


def test_an_executor_changes_nothing(whole, tmp_path):
    keys = []
    with ThreadPoolExecutor(2) as executor:
        settings = {"executor": executor, "finished": lambda key, result: keys.append(key)}
        folder = run_study(parse(FILE, "tiny"), tmp_path, **settings)
    assert len(keys) == 6
    assert results(folder) == results(whole)


def test_two_processes_share_the_work_in_one_folder(whole, tmp_path):
    file = tmp_path / "tiny.toml"
    file.write_text(FILE, encoding="utf-8")
    context = multiprocessing.get_context("spawn")
    both_ready, out = context.Barrier(2), tmp_path / "out"
    other = context.Process(target=_run_part, args=(file, out, 2, both_ready))
    other.start()
    _run_part(file, out, 3, both_ready)
    other.join()
    assert other.exitcode == 0
    cells = list((tmp_path / "out" / "tiny" / "cells").iterdir())
    assert len(cells) == 6
    ran = []
    folder = run_study(file, tmp_path / "out", finished=lambda key, result: ran.append(key))
    assert ran == []
    assert results(folder) == results(whole)


def test_what_is_no_sweep_is_refused(tmp_path):
    with raises_code("invalid-input"):
        run_study("illustration", tmp_path)


# Executors


def test_workers_have_one_thread_and_the_users_own_flags(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("MKL_NUM_THREADS", raising=False)
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=here")
    with local_executor(2) as executor:
        seen = {name: executor.submit(os.getenv, name).result() for name in SINGLE_THREAD}
    flags = f"--xla_dump_to=here {SINGLE_THREAD['XLA_FLAGS']}"
    assert seen == {**SINGLE_THREAD, "XLA_FLAGS": flags}
    assert SINGLE_THREAD["OMP_NUM_THREADS"] == "1"
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "MKL_NUM_THREADS" not in os.environ
    assert os.environ["XLA_FLAGS"] == "--xla_dump_to=here"


# Fallbacks

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
    return {cell.policy_name: (cell, run_cell(cell)) for cell in every}


def test_the_summary_says_how_many_decisions_fell_back(finished, tmp_path):
    store = CellStore(tmp_path)
    for cell, found in finished.values():
        store.write(cell.key, found)
    # What was stored has lists instead of arrays.
    write_results(tmp_path, [(cell, store.read(cell.key)) for cell, _ in finished.values()])
    curves = ResultTable.read(tmp_path, "results").by_policy()
    np.testing.assert_array_equal(
        curves["listed"]["regret_mean"], finished["listed"][1]["results"]["regret_mean"]
    )
    with (tmp_path / "summary.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["policy"]: row["fallbacks"] for row in csv.DictReader(file)}
    # All but those of the first batch, in four replicas.
    assert rows == {"random": "0", "alike": str((150 - 60) * 4), "listed": "0"}
    text = io.StringIO()
    print_sweep(parse(OWN, "own"), tmp_path, Console(file=text))
    (line,) = [line for line in text.getvalue().splitlines() if "360" in line]
    assert "alike" in line


def test_a_table_that_is_missing_or_cannot_be_read_is_refused(tmp_path, whole, monkeypatch):
    with raises_code("invalid-input"):
        ResultTable.read(tmp_path, "finals")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with raises_code("missing-extra"):
        ResultTable.read(whole, "finals")
