"""Bandits are deleted over HTTP, by the command line and in Python."""

from threading import Event, Thread

import pytest
from click.testing import CliRunner
from refusals import raises_code
from waiting import wait_until

from submax.bandit.durable import open_bandit, open_store
from submax.cli import main
from submax.live.log.records import DECLARED, TICK
from submax.live.operating.audit_log import AuditLog
from submax.policies.epsilon_greedy import Random

ARMS = {"name": "arms", "actions": ["A", "B"], "reward_wait": 0, "refit_rows": 1}


class NotingStore(MemoryStore):
    """Notes the names of all blobs that were ever stored."""

    def put_blob(self, name, data):
        self.__dict__.setdefault("names", set()).add(name)
        super().put_blob(name, data)


@pytest.fixture
def store():
    return NotingStore()


def contents(store, name):
    """The kinds of the events and the names of the blobs that a store has of a bandit.

    Ticks are left out: a bandit that is open writes them at any time.
    """
    events = [event for stream, event in store.contents() if stream.startswith(f"{name}/")]
    kinds = [event.kind for event in events if event.kind != TICK]
    blobs = [one for one in vars(store).get("names", ()) if one.startswith(f"{name}/")]
    return kinds, sorted(one for one in blobs if store.get_blob(one) is not None)


NOTHING = (["deleted"], [])
"""What is left of a bandit that was deleted."""


def test_a_deleted_bandit_is_gone_and_its_name_can_be_declared_again(http, store):
    for name in ("arms", "arms-2"):
        http.post("/bandits", json={**ARMS, "name": name})
        http.post(f"/bandits/{name}/decide", json={"id": "d1"})
        http.post(f"/bandits/{name}/reward", json={"id": "d1", "value": 1})
    for name in ("arms", "arms-2"):
        wait_until(lambda name=name: http.get(f"/bandits/{name}").json()["version"] > 0)
    before = contents(store, "arms-2")
    answer = http.delete("/bandits/arms")
    assert (answer.status_code, answer.json()) == (200, {"bandits": ["arms-2"]})
    for method, path, body in [
        ("GET", "", None),
        ("DELETE", "", None),
        ("POST", "/decide", {}),
        ("POST", "/reward", {"id": "d1", "value": 1}),
    ]:
        answer = http.request(method, f"/bandits/arms{path}", json=body)
        assert answer.status_code == 404, path
    assert 'bandit="arms"' not in http.get("/metrics").text
    assert contents(store, "arms") == NOTHING
    assert contents(store, "arms-2") == before
    ((_, entry),) = AuditLog(store).newest(1)
    assert (entry.operation, entry.subject) == ("delete", "arms")
    again = {"name": "arms", "actions": ["X", "Y", "Z"], "context": {"age": "number"}}
    shown = http.post("/bandits", json=again)
    assert (shown.status_code, shown.json()["version"]) == (201, 0)
    decision = http.post("/bandits/arms/decide", json={"id": "d1", "context": {"age": 3}}).json()
    assert decision["action"] in ("X", "Y", "Z")
    assert not decision["repeated"]


def test_another_process_learns_that_a_bandit_was_deleted(store):
    """Two bandits on one store stand for two processes."""
    here, there = (open_bandit(store, name="arms", actions=["A", "B"]) for _ in range(2))
    here.delete()
    wait_until(lambda: there.deleted)
    with raises_code("not-found"):
        there.decide()
    with raises_code("not-found"):
        there.reward("d1", 1.0)
    there.close()
    assert contents(store, "arms") == NOTHING
    again = open_bandit(store, name="arms", actions=["C"], background=False)
    assert again.decide().action == "C"
    assert there.deleted


class Slow(Random):
    """A policy whose update waits until it is let go."""

    begun, go = Event(), Event()

    def update(self, state, feedback, rng):
        self.begun.set()
        self.go.wait(60)
        return state


def test_a_fit_under_way_does_not_bring_a_deleted_bandit_back(store):
    options = {"policy": Slow(), "reward_wait": 0.01, "refit_rows": 1}
    bandit = open_bandit(store, name="arms", actions=["A"], **options)
    bandit.decide()
    assert Slow.begun.wait(60)
    deleting = Thread(target=bandit.delete)
    deleting.start()
    wait_until(lambda: contents(store, "arms") == NOTHING)
    Slow.go.set()
    # It waits for the fit.
    deleting.join(60)
    assert not deleting.is_alive()
    assert contents(store, "arms") == NOTHING


def test_the_command_deletes_a_bandit_of_a_file(tmp_path):
    file = tmp_path / "page.db"
    for name in ("one", "two"):
        open_bandit(file, name=name, actions=["A", "B"], background=False).close()

    def delete(*words, **options):
        return CliRunner().invoke(main, ["delete", *map(str, words)], **options).exit_code

    assert delete(file, "one", input="n\n") == 1
    assert delete(file, "one", "--yes") == 0
    store = open_store(file, read_only=True)
    assert store.find("one/settings", DECLARED) is None
    assert store.find("two/settings", DECLARED) is not None
    store.close()
    assert delete(file, "one", "--yes") == 2
    assert delete(tmp_path / "none.db", "one", "--yes") == 2
    assert not (tmp_path / "none.db").exists()
