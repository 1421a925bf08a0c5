"""Sweeps as a Python call, in parts and with several processes on one folder."""

import multiprocessing
from concurrent.futures import ThreadPoolExecutor

import pyarrow.parquet as pq
import pytest
from refusals import raises_code

from submax.simulation.experiment import parse
from submax.simulation.runner import run_study

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


def _run_part(file, out, part, both_ready):
    both_ready.wait(60)
    run_study(file, out, part=part)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return run_study(parse(FILE, "tiny"), tmp_path_factory.mktemp("whole"))


def test_an_executor_changes_nothing(whole, tmp_path):
    keys = []
    with ThreadPoolExecutor(2) as executor:
        folder = run_study(
            parse(FILE, "tiny"),
            tmp_path,
            executor=executor,
            finished=lambda key, result: keys.append(key),
        )
    assert len(keys) == 6
    assert results(folder) == results(whole)


def test_two_processes_share_the_work_in_one_folder(whole, tmp_path):
    file = tmp_path / "tiny.toml"
    file.write_text(FILE, encoding="utf-8")
    context = multiprocessing.get_context("spawn")
    both_ready, out = context.Barrier(2), tmp_path / "out"
    other = context.Process(target=_run_part, args=(file, out, (0, 2), both_ready))
    other.start()
    _run_part(file, out, (1, 2), both_ready)
    other.join()
    assert other.exitcode == 0
    cells = list((tmp_path / "out" / "tiny" / "cells").iterdir())
    assert len(cells) == 6
    ran = []
    folder = run_study(file, tmp_path / "out", finished=lambda key, result: ran.append(key))
    assert ran == []
    assert results(folder) == results(whole)


def test_wrong_parts_and_experiments_are_refused(tmp_path):
    with raises_code("invalid-input", "part"):
        run_study(parse(FILE, "tiny"), tmp_path, part=(2, 2))
    with raises_code("invalid-input"):
        run_study("illustration", tmp_path)
