import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pyarrow.parquet as pq
import pytest
from waiting import wait_until

from submax.simulation.experiment import experiment_groups

from .conftest import POLICIES, SMALL

CELLS = 2 * len(POLICIES)
"""Of the small run that most tests have in common, under two delays."""
COLUMNS = [
    "arms", "alpha", "beta", "delay", "policy", "replicas", "observations",
    "final_mean", "final_standard_error", "final_q025", "final_q975",
    "final_reward_mean", "final_reward_standard_error", "fallbacks",
]  # fmt: skip

GROUPS = experiment_groups()
together = pytest.mark.xdist_group("bernoulli")
"""Tests that share the results of the small run, in one process."""


@pytest.mark.slow
@pytest.mark.usefixtures("unrendered")
def test_illustration_summary(done, summary, tmp_path):
    done("reproduce", "illustration", "--replicas", 20, "--out", tmp_path)
    rows = {row["policy"]: row for row in summary(tmp_path / "illustration")}
    assert list(rows["random"]) == ["policy", "expected_reward", "standard_error", "environments"]
    assert {"random", "rcp-negative", "rcp-optimistic", "rcp-optimized", "rcp-submax"} <= set(rows)
    assert {row["environments"] for row in rows.values()} == {"20"}
    assert (tmp_path / "illustration" / "figures" / "illustration.png").exists()


PARTS = ("ucb1", "rcp-submax")
PART = (
    *("reproduce", "bernoulli", "--only", "beta=9", "--only", "delay=1000"),
    *("--replicas", "4", "--no-figures"),
)
"""Three numbers of arms, one of them also in the small run."""


@pytest.fixture(scope="module")
def parts(done, tmp_path_factory):
    """A directory into which two policies were run, one after the other, without figures."""
    out = tmp_path_factory.mktemp("parts")
    for policy in PARTS:
        done(*PART, "--only", f"policy={policy}", "--out", out)
    return out / "bernoulli"


@together
def test_bernoulli_writes_everything_it_promises(summary, parts):
    rows = summary(parts)
    assert list(rows[0]) == COLUMNS
    assert [(row["arms"], row["policy"]) for row in rows] == [
        (arms, policy) for arms in ("10", "100", "500") for policy in PARTS
    ]
    assert {row["observations"] for row in rows} == {"5000"}
    curves = pq.read_table(parts / "results.parquet")
    assert curves.num_rows == 6 * 500
    finals = pq.read_table(parts / "finals.parquet").to_pylist()
    first = [one["regret"] for one in finals if one["arms"] == 10 and one["policy"] == "ucb1"]
    assert len(first) == 4
    assert float(rows[0]["final_mean"]) == pytest.approx(sum(first) / 4, rel=1e-12)
    assert (parts / "manifest.json").is_file()


@together
def test_parts_add_up_in_one_directory_and_are_the_same_as_together(whole, summary, parts):
    wanted = [row for row in whole if row["policy"] in PARTS and row["delay"] == "1000"]
    assert [row["policy"] for row in wanted] == [*PARTS]
    assert [row for row in summary(parts) if row["arms"] == "10"] == wanted


@together
def test_figures_are_drawn_without_running(done, parts, render_only):
    render_only("panel-arms=10.png")
    for path in (parts / "cells").iterdir():
        os.utime(path, (1, 1))
    done("plot", parts)
    figures = {path.name for path in (parts / "figures").iterdir()}
    assert {"all-configurations.png", "varying-arms.pdf", "paper-varying-arms.png"} <= figures
    assert (parts / "figures" / "panel-arms=10.png").stat().st_size > 5_000
    assert all(path.stat().st_mtime == 1 for path in (parts / "cells").iterdir())


@together
def test_killed_run_ends_its_workers_and_goes_on_without_repeating_or_losing_a_cell(
    done, refused, start, whole, summary, wait_for_cells, tmp_path
):
    """The cells of two workers and those of this process are the same as in one process."""
    directory = tmp_path / "bernoulli"
    process = start(*SMALL, "--jobs", 2, "--out", tmp_path)
    wait_for_cells(directory, 5)
    workers = _children(process.pid)
    process.kill()
    process.communicate(timeout=300)
    assert workers
    wait_until(lambda: not any(_alive(worker) for worker in workers))
    kept = {path: path.stat().st_mtime_ns for path in (directory / "cells").glob("*.msgpack")}
    assert 5 <= len(kept) < CELLS
    refused("plot", directory)
    assert f"{len(kept)} of {CELLS} cells" in done(*SMALL, "--out", tmp_path)
    assert all(path.stat().st_mtime_ns == time for path, time in kept.items())
    assert len(whole) == CELLS
    assert summary(directory) == whole


WORKER = ("distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny", "--no-dashboard")


@pytest.fixture
def cluster():
    """The address of a scheduler with a worker, both here, and another worker's process."""
    from distributed import LocalCluster

    here = {"processes": False, "protocol": "tcp", "host": "127.0.0.1", "dashboard_address": None}
    with LocalCluster(n_workers=1, threads_per_worker=1, **here) as cluster:
        command = [sys.executable, "-m", *WORKER, cluster.scheduler_address]
        second = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: len(cluster.scheduler.workers) == 2)
        yield cluster.scheduler_address, second
        second.kill()
        second.wait(timeout=300)


@together
def test_sweep_survives_a_killed_worker_with_the_same_results(
    cluster, invoke_with_workers, whole, summary, wait_for_cells, tmp_path
):
    address, worker = cluster
    finished = []

    def kill() -> None:
        finished.extend(wait_for_cells(tmp_path / "dask" / "bernoulli", 5))
        os.kill(worker.pid, signal.SIGKILL)

    killing = Thread(target=kill)
    killing.start()
    result = invoke_with_workers(*SMALL, "--scheduler", address, "--out", tmp_path / "dask")
    killing.join()
    assert 5 <= len(finished) < CELLS
    assert result.exit_code == 0, result.stderr
    rows = summary(tmp_path / "dask" / "bernoulli")
    assert len(rows) == CELLS
    assert rows == whole


@pytest.mark.slow
@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.soak)]
)
def test_interrupt_stops_cleanly(start, wait_for_cells, tmp_path, number):
    # So many replicas that the run has not ended when it is interrupted.
    process = start(*SMALL, "--replicas", 100, "--jobs", 1, "--out", tmp_path)
    wait_for_cells(tmp_path / "bernoulli", 3)
    workers = _children(process.pid)
    process.send_signal(number)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "Traceback" not in errors
    assert workers
    wait_until(lambda: not any(_alive(worker) for worker in workers))


@pytest.mark.slow
@pytest.mark.usefixtures("unrendered")
def test_changed_code_of_the_users_own_is_run_again(start, done, summary, tmp_path):
    guide = Path(__file__).parents[2] / "docs" / "how-to" / "experiments.md"
    blocks = guide.read_text(encoding="utf-8").split("```")
    (code,) = [block for block in blocks if block.startswith("python\n# first_arm.py")]
    (tmp_path / "own.toml").write_text(
        'observations = 50\npolicies = [{ kind = "first_arm.py:FirstArm", name = "../own" }]\n'
        '[environment]\nkind = "bernoulli"\narms = 3\n'
    )
    options = ("--replicas", 5, "--jobs", 1, "--no-figures", "--out", tmp_path / "out")
    command = ("simulate", tmp_path / "own.toml", *options)
    (tmp_path / "first_arm.py").write_text(code.removeprefix("python\n"))
    done(*command)
    first = summary(tmp_path / "out" / "own")
    changed = code.replace("[..., 0]", "[..., -1]")
    (tmp_path / "first_arm.py").write_text(changed.removeprefix("python\n"))
    # The second time in processes of its own, whose worker imports the class.
    process = start(*command)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    assert summary(tmp_path / "out" / "own") != first
    written = {path.name for path in tmp_path.iterdir()} - {"__pycache__"}
    assert written == {"own.toml", "first_arm.py", "out"}
    (tmp_path / "first_arm.py").unlink()
    done("plot", tmp_path / "out" / "own")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["all"], GROUPS["all"]),
        (["rivals"], GROUPS["rivals"]),
        (["ratings", "beyond", "bernoulli"], ["ratings", *GROUPS["beyond"], "bernoulli"]),
        (["all", "beyond", "all"], [*GROUPS["all"], *GROUPS["beyond"]]),
    ],
    ids=" ".join,
)
def test_all_and_beyond_stand_for_their_experiments_each_once(names, expected, done, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "submax.cli.running.run_experiments", lambda found, **options: asked.extend(found)
    )
    done("reproduce", *names)
    assert [one.name for one in asked] == list(dict.fromkeys(expected))


@pytest.mark.slow
@pytest.mark.usefixtures("unrendered")
def test_an_offline_experiment_writes_tables_and_figures_and_goes_on(done, summary, tmp_path):
    rows = [f"{row % 3 + row / 100:.2f},{'abc'[row % 3]}" for row in range(60)]
    (tmp_path / "rows.csv").write_text("\n".join(["x,label", *rows]))
    (tmp_path / "tiny.toml").write_text(
        'experiment = "offline"\nobservations = 400\nreplicas = 2\n'
        'policies = ["random", "linucb"]\n'
        '[environment]\nkind = "classification"\nfile = "rows.csv"\n'
    )
    command = ("simulate", tmp_path / "tiny.toml", "--out", tmp_path / "out")
    done(*command)
    directory = tmp_path / "out" / "tiny"
    figures = [directory / "figures" / f"offline.{kind}" for kind in ("pdf", "png")]
    assert sorted((directory / "figures").iterdir()) == figures
    assert {path.name for path in directory.iterdir()} == {
        "cells", "estimates.csv", "figures", "manifest.json", "summary.csv",
    }  # fmt: skip
    found = summary(directory)
    assert {(row["policy"], row["replicas"]) for row in found} == {("random", "2"), ("linucb", "2")}
    estimates = (directory / "estimates.csv").read_text(encoding="utf-8").splitlines()
    assert len(estimates) == 1 + 2 * len(found)

    kept, lost = sorted((directory / "cells").iterdir())
    os.utime(kept, (1, 1))
    lost.unlink()
    assert "1 of 2 cells" in done(*command)
    assert kept.stat().st_mtime == 1
    assert summary(directory) == found

    for path in figures:
        path.unlink()
    done("plot", directory)
    assert sorted((directory / "figures").iterdir()) == figures


def _children(parent: int) -> list[int]:
    """Processes below a process."""
    return [int(one) for one in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]


def _alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
