"""A server whose store cannot write says that it is not ready."""

import signal
import sqlite3
import time
from contextlib import ExitStack, closing
from threading import Event

import httpx
import pytest

from submax.core.errors import StoreError
from submax.live.store.memory_store import MemoryStore
from submax.live.store.sqlite_store import SQLiteStore
from submax.web.server import write_probe

ARMS = {"name": "page", "actions": ["A", "B"]}


class FullDisk(MemoryStore):
    """A store that cannot write while its disk is full."""

    full, written = False, 0

    def put_blob(self, name, data):
        self.written += 1
        if self.full:
            raise StoreError("the disk is full")
        super().put_blob(name, data)


class Damaged(MemoryStore):
    def put_blob(self, name, data):
        raise ValueError("this is no database")


class Hanging(MemoryStore):
    def __init__(self):
        super().__init__()
        self.goes_on = Event()

    def put_blob(self, name, data):
        self.goes_on.wait(30)
        super().put_blob(name, data)


@pytest.mark.slow
def test_a_store_that_cannot_write_is_not_ready_until_it_can(serving, eventually):
    store = FullDisk()
    http = serving(store)
    assert http.get("/readyz").status_code == 200
    store.full = True
    eventually(lambda: http.get("/readyz").status_code == 503)
    answer = http.get("/readyz")
    assert answer.json()["error"] == "the disk is full"
    assert http.get("/healthz").status_code == 200
    store.full = False
    eventually(lambda: http.get("/readyz").status_code == 200)


def test_many_questions_cost_one_write(serving):
    store = FullDisk()
    http = serving(store)
    before = store.written
    for _ in range(50):
        assert http.get("/readyz").status_code == 200
    assert store.written - before <= 3


def test_any_failure_of_the_store_is_an_answer(serving):
    answer = serving(Damaged()).get("/readyz")
    assert answer.status_code == 503
    assert "this is no database" in answer.json()["error"]


def test_a_store_that_hangs_is_not_ready(serving, monkeypatch, eventually):
    monkeypatch.setattr(write_probe, "PROBE_SECONDS", 0.1)
    store = Hanging()
    http = serving(store)
    for _ in range(3):
        answer = http.get("/readyz")
        assert answer.status_code == 503
        assert "has not written anything" in answer.json()["error"]
    store.goes_on.set()
    eventually(lambda: http.get("/readyz").status_code == 200)


@pytest.mark.slow
def test_a_file_that_another_program_locks_is_not_ready(serving, tmp_path, eventually):
    path = tmp_path / "page.db"
    http = serving(SQLiteStore(path))
    http.post("/bandits", json=ARMS)
    assert http.get("/readyz").status_code == 200
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        time.sleep(write_probe.FRESH_SECONDS)
        assert http.get("/readyz").status_code == 503
        other.execute("ROLLBACK")
    eventually(lambda: http.get("/readyz").status_code == 200)


@pytest.fixture
def client_of():
    """A client with patience, which is closed when the test ends."""
    with ExitStack() as opened:
        yield lambda address: opened.enter_context(
            httpx.Client(verify=False, base_url=address, timeout=30)
        )


@pytest.mark.slow
def test_a_file_that_cannot_grow_is_not_ready(serve, client_of, tmp_path):
    """The file and its log may not grow, as on a full disk, and then they may again."""
    resource = pytest.importorskip("resource")
    server = serve(tmp_path / "page.db")
    server.wait_ready()
    client = client_of(server.address)
    client.post("/bandits", json=ARMS)
    process = server.process.pid
    limit = max(one.stat().st_size for one in tmp_path.glob("page.db*"))
    before = resource.prlimit(process, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    try:
        end = time.monotonic() + 60
        while client.get("/readyz").status_code == 200:
            client.post("/bandits/page/decide", json={})
            assert time.monotonic() < end
        assert client.get("/readyz").status_code == 503
    finally:
        resource.prlimit(process, resource.RLIMIT_FSIZE, before)
    server.wait_ready()
    assert client.post("/bandits/page/decide", json={}).status_code == 200
    server.signal(signal.SIGTERM)
    assert server.ended() == 0
