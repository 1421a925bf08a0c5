"""Exports are written in processes of their own, a few at a time."""

import io
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pyarrow.parquet as pq
import pytest
from refusals import raises_code

from submax.core.errors import StoreError
from submax.live.bandits.open import open_bandit
from submax.live.store.memory_store import MemoryStore
from submax.live.store.sqlite_store import SQLiteStore
from submax.web.server.exports import export_runner
from submax.web.server.exports.export_runner import ExportRunner
from submax.web.server.service import Service

DECISIONS = 50


def fill(store):
    bandit = open_bandit(store, name="page", actions=["A", "B"], background=False)
    for made in bandit.decide_many([{"id": f"d{number}"} for number in range(DECISIONS)]):
        bandit.reward(made.id, 1.0)
    return bandit


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    store = MemoryStore() if request.param == "memory" else SQLiteStore(tmp_path / "page.db")
    fill(store).stop()
    yield store
    store.close()


def test_an_export_over_http_has_all_decisions(serving, store):
    answer = serving(store).get("/bandits/page/export")
    assert answer.status_code == 200
    rows = pq.read_table(io.BytesIO(answer.content)).to_pylist()
    assert [row["id"] for row in rows] == [f"d{number}" for number in range(DECISIONS)]
    assert {row["reward"] for row in rows} == {1.0}


class Waiting(ExportRunner):
    """Exports that wait until they are told to go on."""

    def __init__(self, store):
        super().__init__(store)
        self.goes_on, self.begun = Event(), []

    def _run(self, job):
        self.begun.append(job)
        assert self.goes_on.wait(30)
        super()._run(job)


@pytest.mark.slow
def test_more_exports_than_allowed_are_refused_and_decisions_are_not(
    serving, tmp_path, eventually, one_at_a_time
):
    store = SQLiteStore(tmp_path / "page.db")
    fill(store).stop()
    service, runner = Service(store), Waiting(store)
    service.exports = runner
    http = serving(service)
    eventually(lambda: service.ready)
    with ThreadPoolExecutor(export_runner.MAX_EXPORTS) as pool:
        running = [
            pool.submit(http.get, "/bandits/page/export") for _ in range(export_runner.MAX_EXPORTS)
        ]
        eventually(lambda: len(runner.begun) == export_runner.MAX_EXPORTS)
        refused = http.get("/bandits/page/export")
        assert refused.status_code == 429
        assert refused.json()["code"] == "too-many-requests"
        assert "no more are allowed at a time" in refused.json()["error"]
        assert http.post("/bandits/page/decide", json={}).status_code == 200
        runner.goes_on.set()
        assert [one.result().status_code for one in running] == [200] * len(running)
    assert http.get("/bandits/page/export").status_code == 200


@pytest.fixture
def one_at_a_time(monkeypatch):
    """Each export takes a second to start its process."""
    monkeypatch.setattr(export_runner, "MAX_EXPORTS", 1)


@pytest.fixture
def runner(tmp_path, one_at_a_time):
    store = SQLiteStore(tmp_path / "page.db")
    fill(store).stop()
    yield ExportRunner(store)
    store.close()


def test_an_export_runs_in_another_process_with_a_low_priority(runner, tmp_path, monkeypatch):
    seen = []
    started = runner._started

    def watched(complaints):
        seen.append(started(complaints))
        return seen[-1]

    monkeypatch.setattr(runner, "_started", watched)
    runner.write("page", tmp_path / "out.parquet")
    (process,) = seen
    assert process.pid != os.getpid()
    assert process.returncode == 0
    # What the process is to do is not among its arguments, which others can read.
    assert not [one for one in process.args if "page" in one]
    assert pq.read_table(tmp_path / "out.parquet").num_rows == DECISIONS


@pytest.mark.slow
def test_an_export_that_fails_says_why(runner, tmp_path):
    with raises_code("invalid-input"):
        runner.write("none", tmp_path / "out.parquet")
    with raises_code("store-unavailable"):
        runner.write("page", tmp_path / "none" / "out.parquet")
    # Exports that failed have given their place back: there is one, and nobody has it.
    assert runner._slots.acquire(blocking=False)


def test_an_export_whose_process_is_killed_fails_and_gives_its_place_back(
    runner, tmp_path, monkeypatch
):
    started = runner._started

    def killed(complaints):
        process = started(complaints)
        process.send_signal(signal.SIGKILL)
        return process

    monkeypatch.setattr(runner, "_started", killed)
    for _ in range(export_runner.MAX_EXPORTS + 1):
        with raises_code("store-unavailable"):
            runner.write("page", tmp_path / "out.parquet")


def test_closing_ends_what_is_under_way_and_starts_no_more(runner, tmp_path, monkeypatch):
    # A module of Python that runs for some seconds.
    monkeypatch.setattr(export_runner, "MODULE", "timeit")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(runner.write, "page", tmp_path / "out.parquet")
        while not runner._running:
            time.sleep(0.001)
        runner.close()
        with pytest.raises(StoreError):
            running.result(10)
    with raises_code("store-unavailable"):
        runner.write("page", tmp_path / "out.parquet")


def test_too_many_exports_are_told_to_wait(runner, tmp_path):
    for _ in range(export_runner.MAX_EXPORTS):
        runner._slots.acquire()
    with raises_code("too-many-requests"):
        runner.write("page", tmp_path / "out.parquet")


@pytest.mark.slow
def test_a_server_that_stops_ends_its_exports(serve, tmp_path):
    fill(SQLiteStore(tmp_path / "page.db")).close()
    server = serve(tmp_path / "page.db")
    server.wait_ready()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(server.get, "/bandits/page/export", timeout=20)
        time.sleep(0.2)
        server.signal(signal.SIGTERM)
        assert server.ended() == 0
        assert running.exception() is not None or running.result().status_code in (200, 503)


ENDLESS = """
import os, pathlib, sys, time
from submax.web.server.exports import export_job

def run(job):
    pathlib.Path(job.path).write_text(str(os.getpid()))
    time.sleep(60)

export_job.ExportJob.run = run
export_job.main()
"""
SERVER = """
import pathlib, sys
sys.path.insert(0, sys.argv[1])
from submax.live.store.sqlite_store import SQLiteStore
from submax.web.server.exports import export_runner

export_runner.MODULE = "endless"
store = SQLiteStore(pathlib.Path(sys.argv[1], "page.db"))
export_runner.ExportRunner(store).write("page", pathlib.Path(sys.argv[1], "pid"))
"""


@pytest.mark.skipif(os.name == "nt", reason="processes are killed by signals")
def test_an_export_ends_with_its_server_even_if_the_server_is_killed(tmp_path, eventually):
    (tmp_path / "endless.py").write_text(ENDLESS)
    server = subprocess.Popen([sys.executable, "-c", SERVER, str(tmp_path)])
    pid = tmp_path / "pid"
    eventually(lambda: pid.exists() and pid.read_text())
    server.kill()
    server.wait()
    # A process that has ended may stay in the table of processes until its new parent has asked.
    eventually(lambda: not is_running(int(pid.read_text())))


def is_running(process):
    status = Path(f"/proc/{process}/stat")
    if Path("/proc/self").exists():
        return status.exists() and status.read_text().rsplit(")", 1)[1].split()[0] != "Z"
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
