"""Exports are written in processes of their own, a few at a time."""

import io
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from waiting import wait_until

from submax.bandit.durable import open_bandit
from submax.bandit.store import open_store
from submax.server.service import Service
from submax.web.server.exports import export_runner

DECISIONS = 50
EXPORT = "/bandits/page/export"
WAITING = """
import os, pathlib, time
from submax.web.server.exports import export_job

folder, run = pathlib.Path(__file__).parent, export_job.ExportJob.run

def waiting(job):
    folder.joinpath("written").write_text(str(os.getpid()))
    folder.joinpath("written").rename(folder / "begun")
    while not folder.joinpath("go").exists():
        time.sleep(0.01)
    run(job)

export_job.ExportJob.run = waiting
export_job.main()
"""
"""A module that exports as the server does, but says that it has begun and waits for a file."""
SERVER = """
import pathlib, sys
folder = pathlib.Path(sys.argv[1])
sys.path.insert(0, sys.argv[1])
from submax.bandit.store import open_store
from submax.web.server.exports import export_runner

export_runner.MODULE = "waiting_export"
export_runner.ExportRunner(open_store(folder / "page.db")).write("page", folder / "out.parquet")
"""


@pytest.fixture
def store(tmp_path):
    (tmp_path / "waiting_export.py").write_text(WAITING)
    store = open_store(tmp_path / "page.db")
    bandit = open_bandit(store, name="page", actions=["A", "B"], background=False)
    for made in bandit.decide_many([{"id": f"d{number}"} for number in range(DECISIONS)]):
        bandit.reward(made.id, 1.0)
    bandit.stop()
    yield store
    store.close()


@pytest.fixture
def service(store, trial, tmp_path, monkeypatch):
    """A service with room for one export, which waits."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(export_runner, "MODULE", "waiting_export")
    monkeypatch.setattr(export_runner, "MAX_EXPORTS", 1)
    return Service(store, trial)


@pytest.fixture
def http(service, serving):
    http = serving(service)
    wait_until(lambda: service.ready)
    return http


def begun(folder) -> int:
    """The process of an export, once it has begun."""
    return int(wait_until(lambda: (folder / "begun").exists() and (folder / "begun").read_text()))


def is_running(process) -> bool:
    """A process that has ended may stay in the table of processes until its parent has asked."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"


@pytest.mark.slow
def test_an_export_has_a_process_of_its_own_which_may_be_killed(http, tmp_path):
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(http.get, EXPORT)
        process = begun(tmp_path)
        assert process != os.getpid()
        refused = http.get(EXPORT)
        assert (refused.status_code, refused.json()["code"]) == (429, "too-many-requests")
        assert http.post("/bandits/page/decide", json={}).status_code == 200
        # The address of a database may hold a password, and others can read arguments.
        arguments = Path(f"/proc/{process}/cmdline")
        assert not arguments.exists() or b"page" not in arguments.read_bytes()
        os.kill(process, signal.SIGKILL)
        assert running.result().status_code == 503
    (tmp_path / "go").touch()
    # Its place is free again.
    answer = http.get(EXPORT)
    assert answer.status_code == 200
    rows = pq.read_table(io.BytesIO(answer.content)).to_pylist()[:DECISIONS]
    assert [row["id"] for row in rows] == [f"d{number}" for number in range(DECISIONS)]
    assert {row["reward"] for row in rows} == {1.0}


def test_closing_ends_what_is_under_way_and_starts_no_more(http, service, tmp_path):
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(http.get, EXPORT)
        process = begun(tmp_path)
        service.close()
        assert running.result().status_code == 503
    wait_until(lambda: not is_running(process))
    assert http.get(EXPORT).status_code == 503


@pytest.mark.skipif(os.name == "nt", reason="processes are killed by signals")
def test_an_export_ends_with_its_server_even_if_the_server_is_killed(store, tmp_path):
    store.close()
    server = subprocess.Popen([sys.executable, "-c", SERVER, str(tmp_path)])
    process = begun(tmp_path)
    server.kill()
    server.wait()
    wait_until(lambda: not is_running(process))
