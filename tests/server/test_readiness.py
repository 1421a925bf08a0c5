"""A server whose store cannot write says that it is not ready."""

import sqlite3
from contextlib import closing
from threading import Event

import pytest
from waiting import wait_until

from submax.bandit.store import open_store
from submax.core.errors import StoreError
from submax.server import service as service_module


class Broken:
    """What a store does that cannot write while it has a ``failure``, or until it ``goes_on``."""

    def __init__(self):
        self.failure, self.written, self.goes_on = None, 0, Event()
        self.goes_on.set()

    def __call__(self):
        self.written += 1
        self.goes_on.wait(60)
        if self.failure is not None:
            raise self.failure


@pytest.fixture
def broken(store, monkeypatch):
    broken = Broken()
    monkeypatch.setattr(store, "check_writable", broken)
    return broken


@pytest.fixture
def asked_anew(monkeypatch):
    """What a probe of the store has found is not used again, and a probe takes a moment."""
    monkeypatch.setattr(service_module, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(service_module, "PROBE_SECONDS", 0.1)


def readiness(http):
    answer = http.get("/readyz")
    if answer.status_code != 200:
        assert answer.json()["code"] == "store-unavailable"
    return answer.status_code


@pytest.mark.parametrize("failure", [StoreError("the disk is full"), ValueError("no database")])
def test_a_store_that_cannot_write_is_not_ready_until_it_can(http, broken, asked_anew, failure):
    wait_until(lambda: readiness(http) == 200)
    broken.failure = failure
    assert readiness(http) == 503
    assert http.get("/healthz").status_code == 200
    broken.failure = None
    wait_until(lambda: readiness(http) == 200)


def test_many_questions_cost_one_write(http, broken, monkeypatch):
    monkeypatch.setattr(service_module, "FRESH_SECONDS", 600.0)
    for _ in range(50):
        assert readiness(http) == 200
    assert broken.written == 1


def test_a_store_that_hangs_is_not_ready(http, broken, asked_anew):
    wait_until(lambda: readiness(http) == 200)
    broken.goes_on.clear()
    for _ in range(3):
        assert readiness(http) == 503
    broken.goes_on.set()
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
