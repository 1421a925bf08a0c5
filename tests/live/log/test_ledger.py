from unittest import mock

import numpy as np
import pytest
from refusals import raises_code

from submax.live.bandits.open import open_bandit
from submax.live.log.bandits import log_stream
from submax.live.log.records import REWARD
from submax.live.log.rows import training_rows
from submax.live.store.memory_store import MemoryStore
from submax.testing import ManualClock

pytestmark = pytest.mark.filterwarnings("ignore::submax.bandit.rewards.LateRewardWarning")

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
    fast, slow, late = bandit.decide(), bandit.decide(), bandit.decide()
    bandit.reward(fast.id, 3.0)
    clock.now += WAIT - 0.001
    assert bandit.reward(slow.id, 2.0).status == "accepted"
    assert rewards(bandit) == []
    clock.now += 0.001
    assert bandit.reward(late.id, 5.0).status == "late"
    assert rewards(bandit) == [3.0, 2.0, 0.0]
    counts = bandit.ledger().counts
    assert (counts["matured"], counts["by default"], counts["late rewards"]) == (3, 1, 1)
    # A late reward is kept, although it is not learned.
    events = bandit.store.read(log_stream(bandit.name))
    assert [event.kind for event in events].count(REWARD) == 3


def test_a_reward_waits_in_quarantine_for_its_decision(bandit, clock):
    assert bandit.reward("too-late", 5.0).status == "quarantined"
    clock.now += 1
    assert bandit.reward("later", 4.0).status == "quarantined"
    clock.now += QUARANTINE - 1
    bandit.decide(id="later")
    bandit.decide(id="too-late")
    clock.now += WAIT
    assert rewards(bandit) == [4.0, 0.0]
    assert bandit.ledger().counts["orphans"] == 1


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


@pytest.mark.parametrize("combine", ["max", "sum"])
def test_rewards_replayed_and_shuffled_in_any_store_give_the_same_rows(tmp_path, combine, seed):
    hashes = set()
    for number, times in enumerate((1, 5, 1, 5)):
        clock, rng = ManualClock(), np.random.default_rng((seed, number))
        place = MemoryStore(clock) if number < 2 else tmp_path / f"{number}.db"
        with opened(place, clock, combine=combine) as bandit:
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


def flipped(whole, rng):
    """Bytes of which one bit has changed."""
    damaged = bytearray(whole)
    damaged[rng.integers(len(whole))] ^= 1 << rng.integers(8)
    return bytes(damaged)


def test_a_damaged_snapshot_is_not_believed(rewarded, clock, seed):
    expected, store = state_of(rewarded.ledger()), rewarded.store
    name, rng = f"{rewarded.name}/snapshot", np.random.default_rng(seed)
    whole = store.get_blob(name)
    for _ in range(30):
        store.put_blob(name, flipped(whole, rng))
        assert state_of(opened(store, clock).ledger()) == expected


def test_damaged_rows_are_made_anew_from_the_log(rewarded, clock, seed):
    expected, store = state_of(rewarded.ledger()), rewarded.store
    name, rng = f"{rewarded.name}/rows/2", np.random.default_rng(seed)
    whole = store.get_blob(name)
    for number in range(4):
        store.delete_blob(name)
        if number:
            store.put_blob(name, flipped(whole, rng))
        again = opened(store, clock)
        with raises_code("invalid-input"):
            again.ledger().rows.columns()
        # A change of the choices makes a fit from scratch necessary, which reads all rows.
        again.add(f"new {number}")
        assert again.refit().fitted.rows == 20
        assert state_of(again.ledger()) == expected
        assert store.get_blob(name) == whole
        again.snapshot()
