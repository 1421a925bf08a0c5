"""Rewards of unknown decisions take a bounded amount of memory, in every store."""

import pytest

from submax.live.bandits.open import open_bandit
from submax.live.log.bandits import log_stream
from submax.live.log.collecting import quarantine as module
from submax.live.log.collecting.quarantine import Quarantine, WaitingReward
from submax.live.log.records import decision_key
from submax.live.store.memory_store import MemoryStore
from submax.live.store.postgres_store import PostgresStore
from submax.live.store.sqlite_store import SQLiteStore

MOST, MOST_OF_KEY = 30, 20


@pytest.fixture(
    params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.needs("postgresql"))]
)
def reopened(request, tmp_path):
    """Open the same store again and again."""
    if request.param == "memory":
        store = MemoryStore()
        return lambda: store
    if request.param == "sqlite":
        return lambda: SQLiteStore(tmp_path / "page.db")
    address = request.getfixturevalue("postgres_address")
    return lambda: PostgresStore(address)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(module, "MAX_WAITING", MOST)
    monkeypatch.setattr(module, "MAX_WAITING_OF_KEY", MOST_OF_KEY)


def send(bandit, prefix, number, source):
    rewards = [{"id": f"{prefix}{one}", "value": 1.0} for one in range(number)]
    bandit.write(bandit.requests.rewarding_many(rewards, source=source))


def opened(store):
    return open_bandit(store, name="page", actions=["A"], reward_wait=60, background=False)


def waiting(bandit):
    return list(bandit.ledger().collected.early.quarantine.items())


@pytest.mark.usefixtures("small")
def test_the_oldest_rewards_of_unknown_decisions_are_dropped_and_counted(reopened):
    with opened(reopened()) as bandit:
        send(bandit, "a", 50, "first")
        assert waiting(bandit) == [f"a{number}" for number in range(30, 50)]
        assert bandit.counts()["dropped from quarantine"] == 30
        send(bandit, "b", 50, "second")
        assert waiting(bandit) == [
            *(f"a{number}" for number in range(40, 50)),
            *(f"b{number}" for number in range(30, 50)),
        ]
        assert len(bandit.ledger().collected.early.values) == MOST
        assert bandit.counts()["dropped from quarantine"] == 70
        assert "70 rewards of unknown decisions were dropped" in repr(bandit)
        before = waiting(bandit)
    with opened(reopened()) as bandit:
        assert waiting(bandit) == before
        bandit.decide(id="b30")
        bandit.decide(id="b1")
        position = bandit.store.find(log_stream(bandit.name), decision_key("b30")).position
        known = bandit.ledger().collected
        assert set(known.given.values) == {position}
        assert set(known.early.values) == set(before) - {"b30"}
        assert waiting(bandit) == [one for one in before if one != "b30"]


@pytest.mark.usefixtures("small")
def test_one_key_cannot_push_out_the_rewards_of_another(reopened):
    with opened(reopened()) as bandit:
        send(bandit, "good", 5, "good")
        send(bandit, "bad", 1000, "bad")
        found = waiting(bandit)
        assert [one for one in found if one.startswith("good")] == [f"good{n}" for n in range(5)]
        assert len(found) == 5 + MOST_OF_KEY


def test_long_ids_are_limited_by_their_bytes(monkeypatch):
    monkeypatch.setattr(module, "MAX_BYTES", 5000)
    monkeypatch.setattr(module, "MAX_BYTES_OF_KEY", 3000)
    quarantine, dropped = Quarantine(), []
    for number in range(10):
        dropped += quarantine.add(f"{number}".ljust(100, "x"), WaitingReward(1.0, f"{number % 2}"))
    size = module.ENTRY_BYTES + 100
    assert len(quarantine) == 5000 // size
    assert dropped == [f"{number}".ljust(100, "x") for number in range(10 - len(quarantine))]
    of_one_key = Quarantine()
    for number in range(10):
        of_one_key.add(f"{number}".ljust(100, "x"), WaitingReward(1.0, "key"))
    assert len(of_one_key) == 3000 // size


def test_a_quarantine_made_from_its_items_is_equal_and_goes_on_as_it_was(monkeypatch):
    monkeypatch.setattr(module, "MAX_WAITING", 3)
    first = Quarantine()
    for number in range(5):
        first.add(str(number), WaitingReward(float(number), "key"))
    second = Quarantine(first.items())
    for one in (first, second):
        assert one.add("3", WaitingReward(9.0, "key")) == []
        assert one.add("new", WaitingReward(9.0, "key")) == ["2"]
        assert one.release_expired(3.0) == ["3"]
        one.release("4")
        one.release("4")
        assert list(one.items()) == ["new"]


def test_memory_is_as_small_as_the_limits_say():
    """The estimate of the bytes of an entry is not below what Python takes."""
    import tracemalloc

    count, identifiers = 10_000, [f"{number:032d}" for number in range(10_000)]
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    quarantine, rewards = Quarantine(), {}
    for identifier in identifiers:
        copy = identifier[:16] + identifier[16:]
        quarantine.add(copy, WaitingReward(float(len(rewards)), "key"))
        rewards[copy] = 1.0
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert taken < count * (module.ENTRY_BYTES + 32)
