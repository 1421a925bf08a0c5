"""A server whose store cannot write says that it is not ready."""

import sqlite3
from contextlib import closing
from threading import Event

import pytest
from waiting import wait_until

from submax.bandit.store import open_store
from submax.core.errors import StoreError
from submax.web.server import write_probe


class Broken(MemoryStore):
    """A store that cannot write while it has a ``failure``, or until it ``goes_on``."""

    def __init__(self):
        super().__init__()
        self.failure, self.written, self.goes_on = None, 0, Event()
        self.goes_on.set()

    def put_blob(self, name, data):
        self.written += 1
        self.goes_on.wait(60)
        if self.failure is not None:
            raise self.failure
        super().put_blob(name, data)


@pytest.fixture
def asked_anew(monkeypatch):
    """What a probe of the store has found is not used again, and a probe takes a moment."""
    monkeypatch.setattr(write_probe, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(write_probe, "PROBE_SECONDS", 0.1)


def readiness(http):
    answer = http.get("/readyz")
    if answer.status_code != 200:
        assert answer.json()["code"] == "store-unavailable"
    return answer.status_code


@pytest.mark.parametrize("failure", [StoreError("the disk is full"), ValueError("no database")])
def test_a_store_that_cannot_write_is_not_ready_until_it_can(serving, asked_anew, failure):
    store = Broken()
    http = serving(store)
    wait_until(lambda: readiness(http) == 200)
    store.failure = failure
    assert readiness(http) == 503
    assert http.get("/healthz").status_code == 200
    store.failure = None
    wait_until(lambda: readiness(http) == 200)


def test_many_questions_cost_one_write(serving, monkeypatch):
    monkeypatch.setattr(write_probe, "FRESH_SECONDS", 600.0)
    store = Broken()
    http = serving(store)
    for _ in range(50):
        assert readiness(http) == 200
    assert store.written == 1


def test_a_store_that_hangs_is_not_ready(serving, asked_anew):
    store = Broken()
    store.goes_on.clear()
    http = serving(store)
    for _ in range(3):
        assert readiness(http) == 503
    store.goes_on.set()
    wait_until(lambda: readiness(http) == 200)


def test_a_file_that_another_program_locks_is_not_ready(serving, tmp_path, asked_anew):
    path = tmp_path / "page.db"
    http = serving(open_store(path))
    http.post("/bandits", json={"name": "page", "actions": ["A", "B"]})
    wait_until(lambda: readiness(http) == 200)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert readiness(http) == 503
        other.execute("ROLLBACK")
    wait_until(lambda: readiness(http) == 200)
