"""A server is ready if its store can write; no bandit stops the others from being opened."""

import sqlite3
from contextlib import closing
from threading import Event
from unittest.mock import Mock

import pytest
from waiting import wait_until

from submax.bandit import declaring
from submax.bandit.declaring import declare, read_bandit
from submax.bandit.store import open_store
from submax.core.errors import StoreError
from submax.server import service as service_module


@pytest.fixture
def probe(store, monkeypatch):
    """The write that says whether the store can write."""
    probe = Mock()
    monkeypatch.setattr(store, "check_writable", probe)
    return probe


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
def test_a_store_that_cannot_write_is_not_ready_until_it_can(http, probe, asked_anew, failure):
    wait_until(lambda: readiness(http) == 200)
    probe.side_effect = failure
    assert readiness(http) == 503
    assert http.get("/healthz").status_code == 200
    probe.side_effect = None
    wait_until(lambda: readiness(http) == 200)


def test_many_questions_cost_one_write(http, probe, monkeypatch):
    monkeypatch.setattr(service_module, "FRESH_SECONDS", 600.0)
    for _ in range(50):
        assert readiness(http) == 200
    assert probe.call_count == 1


def test_a_store_that_hangs_is_not_ready(http, probe, asked_anew):
    wait_until(lambda: readiness(http) == 200)
    goes_on = Event()
    probe.side_effect = lambda: goes_on.wait(60)
    for _ in range(3):
        assert readiness(http) == 503
    goes_on.set()
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


def decided(http, name):
    return http.post(f"/bandits/{name}/decide", json={}).status_code


def test_bandits_that_are_slow_or_damaged_do_not_stop_the_others(
    serving, store, monkeypatch, caplog
):
    monkeypatch.setattr(service_module, "SLOW_OPENING_SECONDS", 0.1)
    for name in ("a", "bad", "slow", "z"):
        declare(store, name, {"actions": ["A", "B"]})
    store.execute([("update bandit set settings = '{}' where name = 'bad'", {})])
    go = Event()

    def slow(store, name):
        if name == "slow":
            go.wait(60)
        return read_bandit(store, name)

    monkeypatch.setattr(declaring, "read_bandit", slow)
    http = serving(store)
    wait_until(lambda: decided(http, "a") == decided(http, "z") == 200)
    assert decided(http, "slow") == 503
    wait_until(lambda: "the bandit bad" in caplog.text)
    assert decided(http, "bad") == 400
    go.set()
    wait_until(lambda: decided(http, "slow") == 200)
