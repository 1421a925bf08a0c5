import os
from contextlib import closing
from itertools import islice
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import raises_code

from submax.live.bandits.open import open_bandit
from submax.live.log.bandits import log_stream
from submax.live.log.ledger import ledger_of
from submax.live.log.records import (
    ACTIVATION,
    DECISION,
    REWARD,
    DecisionMade,
    RewardGiven,
    body_of,
    identifier_of,
)
from submax.live.log.rows import training_rows
from submax.live.store.memory_store import MemoryStore
from submax.live.store.sqlite_store import SQLiteStore
from submax.testing import ManualClock

pytestmark = pytest.mark.filterwarnings(
    "ignore::submax.live.serving.late_rewards.LateRewardWarning"
)

WAIT, QUARANTINE = 100.0, 300.0
EXAMPLES = 300 if "SUBMAX_SOAK" in os.environ else 60
HOUR, DAY = 3600.0, 86400.0


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
    decision = bandit.decide()
    bandit.reward(decision.id, 3.0)
    clock.now += WAIT - 0.001
    assert rewards(bandit) == []
    clock.now += 0.001
    assert rewards(bandit) == [3.0]
    assert bandit.ledger().counts["matured"] == 1


def test_a_fast_reward_is_learned_no_sooner_than_none(bandit, clock):
    fast, slow = bandit.decide(), bandit.decide()
    bandit.reward(fast.id, 1.0)
    clock.now += WAIT / 2
    assert rewards(bandit) == []
    bandit.reward(slow.id, 2.0)
    clock.now += WAIT / 2
    assert rewards(bandit) == [1.0, 2.0]


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


def test_a_reward_at_the_last_moment_is_learned(bandit, clock):
    decision = bandit.decide()
    clock.now += WAIT - 0.001
    assert bandit.reward(decision.id, 5.0).status == "accepted"
    clock.now += 1
    assert rewards(bandit) == [5.0]


@pytest.mark.parametrize(
    ("combine", "combined"), [("first", 2.0), ("last", 1.0), ("max", 4.0), ("sum", 7.0)]
)
@pytest.mark.parametrize("before", [0, 1, 3])
def test_several_rewards_are_combined_as_declared(clock, combine, combined, before):
    """Also where some of them came before the decision."""
    bandit = opened(MemoryStore(clock), clock, combine=combine)
    for number, value in enumerate((2.0, 4.0, 1.0)):
        if number == before:
            bandit.decide(id="d")
        bandit.reward("d", value, key=str(number))
        clock.now += 1
    if before == 3:
        bandit.decide(id="d")
    clock.now += WAIT
    assert rewards(bandit) == [combined]


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


def test_the_quarantine_is_counted_from_the_first_reward(bandit, clock):
    bandit.reward("later", 4.0)
    clock.now += QUARANTINE - 1
    bandit.reward("later", 5.0, key="second")
    clock.now += 1
    bandit.decide(id="later")
    clock.now += WAIT
    assert rewards(bandit) == [0.0]


def test_a_decision_that_was_never_shown_is_not_learned_from(bandit, clock):
    decision = bandit.decide(activate=False)
    bandit.reward(decision.id, 1.0)
    clock.now += WAIT
    assert rewards(bandit) == []
    assert bandit.ledger().counts["never activated"] == 1


def test_a_decision_that_was_shown_in_time_is_learned_from(bandit, clock):
    decision = bandit.decide(activate=False)
    bandit.reward(decision.id, 1.0)
    clock.now += WAIT - 1
    assert bandit.activate(decision.id).status == "accepted"
    assert bandit.activate(decision.id).repeated
    clock.now += 1
    assert rewards(bandit) == [1.0]


def test_an_activation_that_is_late_changes_nothing(bandit, clock):
    decision = bandit.decide(activate=False)
    clock.now += WAIT
    assert bandit.activate(decision.id).status == "late"
    clock.now += WAIT
    assert rewards(bandit) == []
    assert bandit.ledger().counts["late activations"] == 1


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


def test_rows_are_in_the_order_of_decisions(bandit, clock):
    decisions = [bandit.decide(activate=number % 3 > 0) for number in range(12)]
    for number, decision in reversed(list(enumerate(decisions))):
        bandit.reward(decision.id, float(number))
        if number % 6 == 0:
            bandit.activate(decision.id)
        clock.now += 1
    clock.now += WAIT
    expected = [number for number in range(12) if number % 3 > 0 or number % 6 == 0]
    columns = bandit.ledger().rows.columns()
    assert columns.reward.tolist() == expected
    assert [bandit.menu.action(row) for row in columns.action] == [
        decisions[number].action for number in expected
    ]
    assert np.allclose(np.exp(columns.log_prob), 1 / 3)


def test_rows_hold_the_context_as_encoded(clock):
    bandit = opened(
        MemoryStore(clock),
        clock,
        policy={"kind": "linucb"},
        context={"country": ["fr", "de"], "age": float},
    )
    bandit.decide({"country": "de", "age": 31})
    clock.now += WAIT
    assert bandit.ledger().rows.columns().context.tolist() == [[0.0, 1.0, 31.0]]


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


IDENTIFIERS = st.sampled_from([f"d{number}" for number in range(6)])
STEPS = st.one_of(
    st.integers(0, 60).map(float),
    st.sampled_from([WAIT, QUARANTINE, HOUR, DAY, 3 * DAY, -1.0, -HOUR, -DAY, -3 * DAY]),
    st.floats(-2 * DAY, 2 * DAY).map(round).map(float),
)
ACTS = st.one_of(
    st.tuples(st.just("decide"), IDENTIFIERS, st.booleans()),
    st.tuples(st.just("reward"), IDENTIFIERS, st.integers(0, 9)),
    st.tuples(st.just("activate"), IDENTIFIERS, st.none()),
    st.tuples(st.just("look"), st.none(), st.none()),
)
HISTORIES = st.lists(st.tuples(STEPS, ACTS), max_size=40)
COMBINES = st.sampled_from(["first", "last", "max", "sum"])


def lived(history, combine, default_reward=0.0):
    """A bandit after a history of acts, and its clock."""
    clock = ManualClock()
    bandit = opened(MemoryStore(clock), clock, combine=combine, default_reward=default_reward)
    live(bandit, clock, enumerate(history), set())
    return bandit, clock


def live(bandit, clock, numbered_acts, decided):
    """Let a bandit go on; ``decided`` are the ids of its decisions."""
    for number, (step, (verb, identifier, value)) in numbered_acts:
        clock.now += step
        if verb == "decide":
            bandit.decide(id=identifier, activate=value)
            decided.add(identifier)
        elif verb == "reward":
            bandit.reward(identifier, float(value), key=str(number))
        elif verb == "activate" and identifier in decided:
            bandit.activate(identifier)
        elif verb == "look":
            bandit.ledger()


def log_of(bandit):
    return bandit.store.read(log_stream(bandit.name))


def elapsed_along(events):
    """At each event, the sum of the steps forward so far."""
    total, last, found = 0.0, None, []
    for event in events:
        total += 0.0 if last is None else max(0.0, event.at - last)
        last = event.at
        found.append(total)
    return found


def joined_rewards(events, elapsed, begin, end, identifier):
    """The rewards of the decision at ``begin`` that count if it matures at ``end``."""
    about = [
        (place, body_of(event, RewardGiven).value)
        for place, event in enumerate(events)
        if event.kind == REWARD and identifier_of(event.about) == identifier and place < end
    ]
    kept, since = [], None
    for place, value in about:
        if place > begin:
            continue
        if since is not None and elapsed[place] - since >= QUARANTINE:
            kept, since = [], None
        since = elapsed[place] if since is None else since
        kept.append(value)
    if since is not None and elapsed[begin] - since >= QUARANTINE:
        kept = []
    return kept + [value for place, value in about if place > begin]


COMBINED = {
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "max": max,
    "sum": sum,
}


def by_the_rule(events, combine, default_reward):
    """The rows of a log by the documented rule, looking at the whole log for each decision."""
    elapsed, rows = elapsed_along(events), []
    for begin, event in enumerate(events):
        if event.kind != DECISION:
            continue
        over = (at for at in range(begin + 1, len(events)) if elapsed[at] - elapsed[begin] >= WAIT)
        end, identifier = next(over, None), identifier_of(event.key)
        if end is None:
            continue
        made = body_of(event, DecisionMade)
        activated = made.activated or any(
            one.kind == ACTIVATION and identifier_of(one.about) == identifier
            for one in events[begin:end]
        )
        values = joined_rewards(events, elapsed, begin, end, identifier)
        reward = COMBINED[combine](values) if values else default_reward
        if activated and reward is not None:
            rows.append((*made.action, reward))
    return rows


def rows_of(ledger):
    columns = ledger.rows.columns()
    return [
        (*action, reward) for action, reward in zip(columns.action, columns.reward, strict=True)
    ]


@settings(max_examples=EXAMPLES)
@given(HISTORIES, COMBINES, st.sampled_from([0.0, None]))
def test_rows_follow_the_rule_whatever_the_clock_does(history, combine, default_reward):
    bandit, _ = lived(history, combine, default_reward)
    ledger = bandit.ledger()
    assert rows_of(ledger) == by_the_rule(log_of(bandit), combine, default_reward)


@settings(max_examples=EXAMPLES // 2)
@given(HISTORIES, st.lists(STEPS, max_size=5))
def test_every_decision_matures_exactly_once_however_the_clock_jumps(history, jumps):
    bandit, clock = lived(history, "last")
    for jump in jumps:
        clock.now += jump
        bandit.ledger()
    # A clock that went back has to be seen by the log before it goes on.
    bandit.decide(id="witness")
    clock.now += WAIT
    ledger = bandit.ledger()
    decisions = [event for event in log_of(bandit) if event.kind == DECISION]
    assert ledger.counts["decisions"] == ledger.counts["matured"] == len(decisions)
    shown = ledger.counts["matured"] - ledger.counts["never activated"]
    assert len(ledger.rows) == shown
    clock.now += 10 * DAY
    assert len(bandit.ledger().rows) == shown


def state_of(ledger):
    return (+ledger.counts, ledger.rows.columns().hash, ledger.tally)


@settings(max_examples=EXAMPLES // 2)
@given(HISTORIES, COMBINES, st.lists(st.integers(0, 20), max_size=8), st.integers(1, 5))
def test_a_ledger_depends_on_the_log_alone_and_not_on_how_it_was_read(
    history, combine, cuts, segment
):
    """Restarts with a snapshot after some acts give what reading the whole log at once gives."""
    with mock.patch.object(training_rows, "SEGMENT", segment):
        clock = ManualClock()
        store, decided = MemoryStore(clock), set()
        bandit, acts = opened(store, clock, combine=combine), iter(enumerate(history))
        for cut in [*cuts, len(history)]:
            live(bandit, clock, islice(acts, cut), decided)
            bandit.ledger()
            bandit.snapshot()
            bandit = opened(store, clock, combine=combine)
        found = state_of(bandit.ledger())
        at_once = ledger_of(store, bandit.name, bandit.settings)
        at_once.follow()
        assert found == state_of(at_once)


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
