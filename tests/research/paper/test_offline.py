"""Experiments on logs: what is finished stays, and what is damaged is computed again."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from submax.research.paper.reproduce import run_offline
from submax.simulation.experiment import cells, load_file
from submax.simulation.results import CellStore
from submax.simulation.runner import unfinished

BROKEN = """
from dataclasses import dataclass
from pathlib import Path
from submax.policies.epsilon_greedy import Random

@dataclass(frozen=True)
class Broken(Random):
    def init(self, problem, replicas, rng):
        if Path(__file__).with_name("broken").exists():
            raise RuntimeError("broken cell")
        return super().init(problem, replicas, rng)
"""


@pytest.fixture
def specification(tmp_path):
    rng = np.random.default_rng(5)
    label = rng.integers(3, size=60)
    rows = [
        f"{x:.3f},{name}" for x, name in zip(label + rng.normal(0, 0.3, 60), label, strict=True)
    ]
    (tmp_path / "rows.csv").write_text("\n".join(["x,label", *rows]))
    (tmp_path / "own.py").write_text(BROKEN)
    path = tmp_path / "tiny.toml"
    path.write_text(
        'experiment = "offline"\nobservations = 300\nreplicas = 2\n'
        'policies = ["random", {name = "own", kind = "own.py:Broken"}, "thompson-1-1"]\n'
        '[environment]\nkind = "classification"\nfile = "rows.csv"\n'
    )
    return load_file(path)


def run(specification, directory):
    """Run all cells; return the keys of those that were not finished before."""
    heard = []
    with ThreadPoolExecutor(1) as executor:
        run_offline(
            specification,
            cells(specification),
            directory,
            executor,
            lambda key, _: heard.append(key),
        )
    return heard


def test_a_run_that_broke_off_goes_on_with_the_same_results(specification, tmp_path):
    directory, (first, own, _) = tmp_path / "out", cells(specification)
    (tmp_path / "broken").touch()
    with pytest.raises(RuntimeError, match="broken cell"):
        run(specification, directory)
    left = unfinished(directory, cells(specification))
    assert own in left
    assert first not in left
    assert not (directory / "summary.csv").exists()
    (tmp_path / "broken").unlink()
    assert sorted(run(specification, directory)) == sorted(cell.key for cell in left)
    assert unfinished(directory, cells(specification)) == []
    # A cell whose file is damaged is computed again.
    stored = directory / "cells" / f"{own.key}.msgpack"
    for damaged in (stored.read_bytes()[:-5], b"", b"\xff\xfe"):
        stored.write_bytes(damaged)
        assert unfinished(directory, cells(specification)) == [own]
    assert run(specification, directory) == [own.key]
    run(specification, tmp_path / "once")
    for name in ("estimates.csv", "summary.csv"):
        assert (directory / name).read_bytes() == (tmp_path / "once" / name).read_bytes()


def test_numbers_that_are_not_known_come_back(tmp_path):
    store = CellStore(tmp_path)
    store.write("a", [{"policy": "random", "value": math.nan, "high": math.inf}])
    (row,) = store.read("a")
    assert math.isnan(row["value"])
    assert row["high"] == math.inf
    assert [path.name for path in tmp_path.iterdir()] == ["a.msgpack"]
