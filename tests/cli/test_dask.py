import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

CELLS = 28
SCHEDULER = """
import asyncio, sys
from distributed import Scheduler, Worker

async def main():
    place = {"host": "127.0.0.1", "port": 0, "scheduler_file": sys.argv[1]}
    async with Scheduler(**place, dashboard=False) as first:
        async with Worker(first.address, nthreads=1, dashboard=False):
            await first.finished()

asyncio.run(main())
"""
"""A scheduler, and in the same process one of its workers."""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[Path, "subprocess.Popen[bytes]"]]:
    """A scheduler and two workers on loopback; the second has a process of its own."""
    address = tmp_path / "scheduler.json"
    worker = ("distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny", "--no-dashboard")
    scheduler = _start("-c", SCHEDULER, str(address))
    second = _start("-m", *worker, "--scheduler-file", str(address))
    yield address, second
    for process in (second, scheduler):
        process.kill()
        process.wait(timeout=30)


@pytest.mark.slow
@pytest.mark.xdist_group("bernoulli")
def test_sweep_survives_a_killed_worker_with_the_same_results(
    cluster, run_with_workers, small, whole, summary, wait_for_cells, tmp_path
):
    file, worker = cluster
    finished = []

    def kill() -> None:
        finished.extend(wait_for_cells(tmp_path / "dask" / "bernoulli", 5))
        os.kill(worker.pid, signal.SIGKILL)

    killing = Thread(target=kill)
    killing.start()
    done = run_with_workers(*small, "--scheduler", _address(file), "--out", tmp_path / "dask")
    killing.join()
    assert 5 <= len(finished) < CELLS
    assert done.returncode == 0, done.stderr
    rows = summary(tmp_path / "dask" / "bernoulli")
    assert len(rows) == CELLS
    assert rows == whole


def _start(*arguments: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, *arguments]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _address(file: Path) -> str:
    for _ in range(3000):
        if file.is_file() and file.read_text().strip():
            return str(json.loads(file.read_text())["address"])
        time.sleep(0.01)
    raise AssertionError("the scheduler did not start")
