"""Many bandits in one server: a few threads, and no bandit stops the others."""

import threading
from threading import Event

import pytest
from refusals import raises_code

from submax.live.bandits.open import open_bandit
from submax.live.store.memory_store import MemoryStore
from submax.live.store.sqlite_store import SQLiteStore
from submax.web.server import service as service_module
from submax.web.server.service import Service

BANDITS = 60


class Slow(MemoryStore):
    """A store that reads the streams of one bandit only when the test says so."""

    def __init__(self):
        super().__init__()
        self.go, self.is_slow = Event(), False

    def read(self, stream, after=0, limit=10_000):
        if self.is_slow and stream.startswith("slow/"):
            self.go.wait(30)
        return super().read(stream, after, limit)


@pytest.fixture
def started(trial):
    opened = []

    def started(store):
        opened.append(Service(store, trial))
        opened[-1].start()
        return opened[-1]

    yield started
    for one in opened:
        one.close()


def declared(store, *names):
    for name in names:
        open_bandit(store, name=name, actions=["A", "B"], reward_wait=0, background=False)


def test_the_number_of_threads_does_not_depend_on_the_number_of_bandits(tmp_path, started):
    few, many = SQLiteStore(tmp_path / "few.db"), SQLiteStore(tmp_path / "many.db")
    declared(few, "page")
    declared(many, *[f"b{number}" for number in range(BANDITS)])
    before = threading.active_count()
    started(few)
    with_one = threading.active_count() - before
    service = started(many)
    assert len(service.opened()) == BANDITS
    # A thread of another test may end meanwhile.
    assert threading.active_count() - before <= 2 * with_one


def test_all_of_many_bandits_learn(tmp_path, started, eventually):
    store = SQLiteStore(tmp_path / "many.db")
    names = [f"b{number}" for number in range(BANDITS)]
    declared(store, *names)
    service = started(store)
    for name in names:
        made = service[name].decide_many([{}] * 20)
        service[name].reward_many([{"id": one.id, "value": 1.0} for one in made])
    for name in names:
        service[name].refit()
    eventually(lambda: all(service[name].version >= 1 for name in names))


def test_a_bandit_that_takes_long_to_open_does_not_stop_the_others(started, monkeypatch):
    monkeypatch.setattr(service_module, "SLOW_OPENING_SECONDS", 0.3)
    store = Slow()
    declared(store, "a", "slow", "z")
    store.is_slow = True
    service = started(store)
    assert service.ready
    assert {one.name for one in service.opened()} == {"a", "z"}
    service["z"].decide()
    with raises_code("store-unavailable"):
        service.find("slow")
    store.go.set()


def test_it_is_opened_when_it_can_be(started, monkeypatch, eventually):
    monkeypatch.setattr(service_module, "SLOW_OPENING_SECONDS", 0.1)
    store = Slow()
    declared(store, "slow")
    store.is_slow = True
    service = started(store)
    assert "slow" not in service
    store.go.set()
    eventually(lambda: "slow" in service)
    assert service.find("slow").decide().id


def test_a_damaged_bandit_does_not_stop_the_others(started, caplog):
    store = MemoryStore()
    declared(store, "a", "b")
    events = store._events["a/settings"]
    events[0] = type(events[0])(
        *[
            b"no settings" if name == "body" else getattr(events[0], name)
            for name in events[0].__struct_fields__
        ]
    )
    store._keys["a/settings", "declared"] = events[0]
    service = started(store)
    assert service.ready
    assert [one.name for one in service.opened()] == ["b"]
    assert "the bandit a cannot be opened" in caplog.text
