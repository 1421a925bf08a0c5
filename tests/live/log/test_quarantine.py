"""Rewards of unknown decisions take a bounded amount of memory, in every store."""

import tracemalloc
import zlib

import pytest

from submax.live.bandits.open import open_bandit
from submax.live.log.collecting import quarantine
from submax.live.store.memory_store import MemoryStore

MOST, MOST_OF_KEY = 30, 20


@pytest.fixture(
    params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.needs("postgresql"))]
)
def opened(request, tmp_path):
    """Open the same bandit again and again."""
    place = {"memory": MemoryStore(), "sqlite": tmp_path / "page.db"}.get(request.param)
    if request.param == "postgres":
        place = request.getfixturevalue("postgres_address")
    # A decision whose reward has waited is learned from at once.
    declared = {"actions": ["A"], "rewards": "counts", "reward_wait": 0}
    return lambda: open_bandit(place, name="page", background=False, **declared)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(quarantine, "MAX_WAITING", MOST)
    monkeypatch.setattr(quarantine, "MAX_WAITING_OF_KEY", MOST_OF_KEY)


def value_of(name):
    """A reward that no other decision has."""
    return float(zlib.crc32(name.encode()))


def send(bandit, names, source):
    rewards = [{"id": name, "value": value_of(name)} for name in names]
    bandit.write(bandit.requests.rewarding_many(rewards, source=source))


def named(prefix, *numbers):
    return [f"{prefix}{number}" for number in range(*numbers)]


def rewarded(bandit, names):
    """Those of some ids whose rewards had waited for their decisions; all of them are decided."""
    bandit.decide_many([{"id": name} for name in names])
    learned = set(bandit.ledger().rows.columns().reward.tolist())
    return [name for name in names if value_of(name) in learned]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("restart", [False, True])
def test_the_oldest_rewards_of_unknown_decisions_are_dropped_and_counted(opened, restart):
    first, second = named("a", 50), named("b", 50)
    bandit = opened()
    send(bandit, first, "first")
    assert bandit.ledger().counts["dropped from quarantine"] == 50 - MOST_OF_KEY
    send(bandit, second, "second")
    assert bandit.ledger().counts["dropped from quarantine"] == 100 - MOST
    if restart:
        bandit.snapshot()
        bandit.close()
        bandit = opened()
    with bandit:
        found = rewarded(bandit, [*first, *second])
        assert found == [*named("a", 40, 50), *named("b", 30, 50)]


@pytest.mark.usefixtures("small")
def test_one_key_cannot_push_out_the_rewards_of_another(opened):
    good, bad = named("good", 5), named("bad", 900)
    with opened() as bandit:
        send(bandit, good, "good")
        send(bandit, bad, "bad")
        assert rewarded(bandit, [*good, *bad]) == [*good, *bad[-MOST_OF_KEY:]]


def test_long_ids_are_limited_by_their_bytes(opened, monkeypatch):
    size = quarantine.ENTRY_BYTES + 100
    monkeypatch.setattr(quarantine, "MAX_BYTES", 9 * size)
    monkeypatch.setattr(quarantine, "MAX_BYTES_OF_KEY", 5 * size)
    first, second = ([name.ljust(100, "x") for name in named(key, 10, 20)] for key in "ab")
    with opened() as bandit:
        send(bandit, first, "first")
        send(bandit, second, "second")
        assert rewarded(bandit, [*first, *second]) == [*first[-4:], *second[-5:]]


def test_memory_is_as_small_as_the_limits_say():
    """The estimate of the bytes of an entry is not below what Python takes."""
    count = 10_000
    identifiers = [f"{number:032d}" for number in range(count)]
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    waiting, rewards = quarantine.Quarantine(), {}
    for identifier in identifiers:
        copy = identifier[:16] + identifier[16:]
        waiting.add(copy, quarantine.WaitingReward(float(len(rewards)), "key"))
        rewards[copy] = 1.0
    taken = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert taken < count * (quarantine.ENTRY_BYTES + 32)
