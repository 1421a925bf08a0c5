import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

CELLS = 28


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[Path, list["subprocess.Popen[bytes]"]]]:
    """A scheduler and two workers in processes of their own, on loopback."""
    address = tmp_path / "scheduler.json"
    common = ["--scheduler-file", str(address), "--no-dashboard"]
    scheduler = _start("dask_scheduler", "--host", "127.0.0.1", "--port", "0", *common)
    workers = [_start("dask_worker", "--nthreads", "1", "--no-nanny", *common) for _ in range(2)]
    yield address, workers
    for process in [*workers, scheduler]:
        process.kill()
        process.wait(timeout=30)


@pytest.mark.slow
@pytest.mark.xdist_group("bernoulli")
def test_sweep_survives_a_killed_worker_with_the_same_results(
    cluster, start, small, whole, summary, wait_for_cells, tmp_path
):
    file, workers = cluster
    process = start(*small, "--scheduler", _address(file), "--out", tmp_path / "dask")
    finished = wait_for_cells(tmp_path / "dask" / "bernoulli", 5)
    os.kill(workers[0].pid, signal.SIGKILL)
    assert len(finished) < CELLS
    _, errors = process.communicate(timeout=240)
    assert process.returncode == 0, errors
    rows = summary(tmp_path / "dask" / "bernoulli")
    assert len(rows) == CELLS
    assert rows == whole


def _start(program: str, *arguments: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", f"distributed.cli.{program}", *arguments]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _address(file: Path) -> str:
    import json

    for _ in range(3000):
        if file.is_file() and file.read_text().strip():
            return str(json.loads(file.read_text())["address"])
        time.sleep(0.01)
    raise AssertionError("the scheduler did not start")
