from contextlib import closing
from unittest import mock

import numpy as np
import pytest
from refusals import raises_code

from submax.live.bandits.open import open_bandit
from submax.live.log.bandits import log_stream
from submax.live.log.records import REWARD
from submax.live.log.rows import training_rows
from submax.live.store.memory_store import MemoryStore
from submax.live.store.sqlite_store import SQLiteStore
from submax.testing import ManualClock

pytestmark = pytest.mark.filterwarnings(
    "ignore::submax.live.serving.late_rewards.LateRewardWarning"
)

WAIT, QUARANTINE = 100.0, 300.0


def opened(store, clock, **others):
    return open_bandit(
        store,
        **{
            "actions": ["A", "B", "C"],
            "policy": {"kind": "random"},
            "rewards": "counts",
            "reward_wait": WAIT,
            "quarantine": QUARANTINE,
            **others,
        },
        background=False,
        clock=clock,
        rng=np.random.default_rng(0),
    )


@pytest.fixture
def bandit(clock):
    return opened(MemoryStore(clock), clock)


def rewards(bandit):
    return bandit.ledger().rows.columns().reward.tolist()


def test_a_decision_matures_after_the_wait_and_not_before(bandit, clock):
    """A fast reward is learned no sooner than a slow one, and one at the last moment is."""
    fast, slow = bandit.decide(), bandit.decide()
    bandit.reward(fast.id, 3.0)
    clock.now += WAIT - 0.001
    assert bandit.reward(slow.id, 2.0).status == "accepted"
    assert rewards(bandit) == []
    clock.now += 0.001
    assert rewards(bandit) == [3.0, 2.0]
    assert bandit.ledger().counts["matured"] == 2


@pytest.mark.parametrize(
    ("default", "learned", "counted"),
    [(7.0, [2.0, 7.0], "by default"), (None, [2.0], "without reward")],
)
def test_a_decision_without_reward_has_the_default_if_there_is_one(
    clock, default, learned, counted
):
    bandit = opened(MemoryStore(clock), clock, default_reward=default)
    bandit.reward(bandit.decide().id, 2.0)
    bandit.decide()
    clock.now += WAIT
    assert rewards(bandit) == learned
    assert bandit.ledger().counts[counted] == 1


def test_a_late_reward_is_kept_and_counted_and_not_learned(bandit, clock):
    decision = bandit.decide()
    clock.now += WAIT
    receipt = bandit.reward(decision.id, 5.0)
    assert receipt.status == "late"
    assert rewards(bandit) == [0.0]
    assert bandit.ledger().counts["late rewards"] == 1
    assert any(event.kind == REWARD for event in bandit.store.read(log_stream(bandit.name)))


def test_a_reward_waits_in_quarantine_for_its_decision(bandit, clock):
    assert bandit.reward("later", 4.0).status == "quarantined"
    clock.now += QUARANTINE - 1
    bandit.decide(id="later")
    clock.now += WAIT
    assert rewards(bandit) == [4.0]
    assert bandit.ledger().counts["orphans"] == 0


def test_a_reward_whose_decision_does_not_come_is_an_orphan(bandit, clock):
    bandit.reward("later", 4.0)
    clock.now += QUARANTINE
    bandit.decide(id="another")
    assert bandit.ledger().counts["orphans"] == 1
    bandit.decide(id="later")
    clock.now += WAIT
    assert rewards(bandit) == [0.0, 0.0]


def test_a_decision_is_learned_from_if_it_was_shown_in_time(bandit, clock):
    shown, never_shown = bandit.decide(activate=False), bandit.decide(activate=False)
    bandit.reward(shown.id, 1.0)
    bandit.reward(never_shown.id, 2.0)
    clock.now += WAIT - 1
    assert bandit.activate(shown.id).status == "accepted"
    assert bandit.activate(shown.id).repeated
    clock.now += 1
    assert bandit.activate(never_shown.id).status == "late"
    assert rewards(bandit) == [1.0]
    assert bandit.ledger().counts["never activated"] == 1
    assert bandit.ledger().counts["late activations"] == 1


def test_nothing_is_remembered_of_what_is_settled_or_given_up(clock):
    sizes = []
    for is_rewarded in (False, True):
        bandit = opened(MemoryStore(clock), clock)
        for number in range(300):
            decision = bandit.decide(activate=not is_rewarded)
            if is_rewarded:
                bandit.reward(decision.id, 1.0)
                bandit.activate(decision.id)
                bandit.reward(f"never-{number}", 1.0)
        bandit.ledger()
        clock.now += max(WAIT, QUARANTINE)
        bandit.decide()
        bandit.ledger()
        bandit.snapshot()
        sizes.append(len(bandit.store.get_blob(f"{bandit.name}/snapshot")))
    # What is remembered takes 2 bytes or more for each of the 300.
    assert sizes[1] < sizes[0] + 300


class BusyStore(MemoryStore):
    """Somebody decides whenever the log is read."""

    bandit, decisions = None, 0

    def read(self, stream, after=0, limit=10_000):
        page = super().read(stream, after, limit)
        if self.bandit is not None and stream == log_stream(self.bandit.name):
            bandit, self.bandit = self.bandit, None
            self.decisions += 1
            assert self.decisions < 20, "the reading does not end"
            bandit.decide()
            self.bandit = bandit
        return page


def test_reading_ends_although_decisions_keep_coming(clock):
    store = BusyStore(clock)
    bandit = opened(store, clock)
    for _ in range(3):
        bandit.decide()
    store.bandit = bandit
    assert bandit.ledger().counts["decisions"] >= 3
    store.bandit = None
    assert store.decisions > 0
    assert bandit.ledger().counts["decisions"] == 3 + store.decisions


STORES = {
    "memory": lambda folder, clock: MemoryStore(clock),
    "sqlite": lambda folder, clock: SQLiteStore(folder / "store.db", clock=clock),
}


@pytest.mark.parametrize("combine", ["max", "sum"])
def test_rewards_replayed_and_shuffled_in_any_store_give_the_same_rows(tmp_path, combine, seed):
    hashes = set()
    for number, (kind, times) in enumerate((kind, n) for kind in STORES for n in (1, 5)):
        clock, rng = ManualClock(), np.random.default_rng((seed, number))
        folder = tmp_path / str(number)
        folder.mkdir()
        with closing(STORES[kind](folder, clock)) as store:
            bandit = opened(store, clock, combine=combine)
            bandit.decide_many([{"id": f"d{one}"} for one in range(60)])
            sent = [(f"d{one}", one % 7, f"k{key}") for one in range(40) for key in range(one % 3)]
            for one in rng.permutation(np.repeat(np.arange(len(sent)), times)):
                identifier, value, key = sent[one]
                bandit.reward(identifier, float(value), key=key)
            clock.now += WAIT
            ledger = bandit.ledger()
            assert len(ledger.rows) == 60
            hashes.add(ledger.rows.columns().hash)
    assert len(hashes) == 1


def state_of(ledger):
    return (+ledger.counts, ledger.rows.columns().hash, ledger.tally)


@pytest.fixture
def rewarded(bandit, clock):
    """A bandit with twenty rows in parts of five, and with a snapshot."""
    with mock.patch.object(training_rows, "SEGMENT", 5):
        for number in range(20):
            bandit.reward(bandit.decide().id, float(number))
        clock.now += WAIT
        bandit.ledger()
        bandit.snapshot()
        yield bandit


def test_a_damaged_snapshot_is_not_believed(rewarded, clock, seed):
    expected, store = state_of(rewarded.ledger()), rewarded.store
    name, rng = f"{rewarded.name}/snapshot", np.random.default_rng(seed)
    whole = store.get_blob(name)
    for _ in range(30):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] ^= 1 << rng.integers(8)
        store.put_blob(name, bytes(damaged))
        assert state_of(opened(store, clock).ledger()) == expected


def test_damaged_rows_are_made_anew_from_the_log(rewarded, clock, seed):
    expected, store = state_of(rewarded.ledger()), rewarded.store
    name, rng = f"{rewarded.name}/rows/2", np.random.default_rng(seed)
    whole = store.get_blob(name)
    for place in [*rng.integers(len(whole), size=3), None]:
        if place is None:
            store.delete_blob(name)
        else:
            damaged = bytearray(whole)
            damaged[place] ^= 255
            store.put_blob(name, bytes(damaged))
        again = opened(store, clock)
        with raises_code("invalid-input"):
            again.ledger().rows.columns()
        # A change of the choices makes a fit from scratch necessary, which reads all rows.
        again.add(f"new {place}")
        assert again.refit().fitted.rows == 20
        assert state_of(again.ledger()) == expected
        assert store.get_blob(name) == whole
        again.snapshot()
