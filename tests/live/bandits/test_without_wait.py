"""A reward_wait of 0 with a store: a decision matures when its reward comes."""

import warnings

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submax.bandit.rewards import LateRewardWarning
from submax.live.bandits.open import open_bandit
from submax.live.log.export import Export
from submax.live.log.ledger import ledger_of
from submax.live.log.records import ACTIVATION, DECISION, REWARD, DecisionMade, RewardGiven, body_of
from submax.live.log.snapshot import read_snapshot, write_snapshot
from submax.live.store.memory_store import MemoryStore
from submax.testing import ManualClock

LIMIT = 50.0


def opened(store, clock, **others):
    declaration = {
        "actions": ["A", "B", "C"],
        "policy": {"kind": "random"},
        "rewards": "counts",
        "reward_wait": 0,
        **others,
    }
    rng = np.random.default_rng(0)
    return open_bandit(store, **declaration, background=False, clock=clock, rng=rng)


def rewards(bandit):
    return bandit.ledger().rows.columns().reward.tolist()


@pytest.mark.parametrize(("default", "learned"), [(7.0, [1.0, 7.0]), (None, [1.0])])
def test_without_a_reward_a_decision_is_learned_from_after_the_limit(
    store, clock, default, learned
):
    bandit = opened(store, clock, no_reward_after=LIMIT, default_reward=default)
    rewarded = bandit.decide()
    slow = bandit.decide()
    bandit.reward(rewarded.id, 1.0)
    clock.now += LIMIT
    assert rewards(bandit) == learned
    with pytest.warns(LateRewardWarning):
        assert bandit.reward(slow.id, 9.0).status == "late"
    assert rewards(bandit) == learned


def test_versions_and_the_export_say_what_was_learned_and_what_is_pending(store, clock, tmp_path):
    bandit = opened(store, clock)
    bandit.reward(bandit.decide(id="a").id, 2.0)
    bandit.decide(id="b")
    fitted = bandit.refit().fitted
    assert (fitted.rows, fitted.ahead) == (1, 1)
    Export(bandit.store, bandit.name).write(tmp_path / "log.parquet")
    table = pq.read_table(tmp_path / "log.parquet").to_pydict()
    assert table["status"] == ["learned", "pending"]
    assert table["reward"] == [2.0, None]


IDENTIFIERS = st.sampled_from([f"d{number}" for number in range(5)])
ACTS = st.one_of(
    st.tuples(st.just("decide"), IDENTIFIERS, st.booleans()),
    st.tuples(st.just("reward"), IDENTIFIERS, st.integers(0, 9)),
    st.tuples(st.just("activate"), IDENTIFIERS, st.none()),
)
HISTORIES = st.lists(st.tuples(st.sampled_from([0.0, 1.0, 20.0, LIMIT]), ACTS), max_size=30)


def lived(history, limit):
    clock = ManualClock()
    bandit = opened(MemoryStore(clock), clock, no_reward_after=limit)
    decided = set()
    for number, (step, (verb, identifier, value)) in enumerate(history):
        clock.now += step
        if verb == "decide":
            bandit.decide(id=identifier, activate=value)
            decided.add(identifier)
        elif verb == "reward":
            bandit.reward(identifier, float(value), key=str(number))
        elif identifier in decided:
            bandit.activate(identifier)
    return bandit


def by_the_rule(events, limit):
    """Rows by the documented rule: for each event, which decisions it completes."""
    rows, decided, rewarded, activated, done = [], {}, {}, set(), set()

    def learn(identifier, reward):
        done.add(identifier)
        if identifier in activated:
            rows.append((*body_of(decided[identifier], DecisionMade).action, reward))

    for event in events:
        for identifier, decision in decided.items():
            over = limit is not None and event.at - decision.at >= limit
            if over and identifier not in done:
                learn(identifier, rewarded.get(identifier, 0.0))
        identifier = (event.key if event.kind == DECISION else event.about)[2:]
        if event.kind == DECISION:
            decided[identifier] = event
            if body_of(event, DecisionMade).activated:
                activated.add(identifier)
        elif identifier in done:
            continue
        elif event.kind == REWARD:
            rewarded.setdefault(identifier, body_of(event, RewardGiven).value)
        elif event.kind == ACTIVATION:
            activated.add(identifier)
        if identifier in decided and identifier in rewarded and identifier in activated:
            learn(identifier, rewarded[identifier])
    return rows


def rows_of(ledger):
    columns = ledger.rows.columns()
    pairs = zip(columns.action, columns.reward, strict=True)
    return [(*action, reward) for action, reward in pairs]


@pytest.mark.filterwarnings("ignore::submax.bandit.rewards.LateRewardWarning")
@settings(max_examples=40)
@given(HISTORIES, st.sampled_from([None, LIMIT]), st.integers(0, 30))
def test_rows_follow_the_rule_also_from_a_snapshot(history, limit, cut):
    bandit = lived(history, limit)
    events = bandit.store.read("default/log")
    ledger = ledger_of(bandit.store, bandit.name, bandit.settings)
    ledger.follow(until=events[min(cut, len(events) - 1)].position if events else None)
    write_snapshot(bandit.store, "apart", ledger)
    again = ledger_of(bandit.store, bandit.name, bandit.settings)
    assert read_snapshot(bandit.store, "apart", again)
    again.follow()
    assert rows_of(again) == by_the_rule(events, limit)
    whole = bandit.ledger()
    assert rows_of(whole)[: len(rows_of(again))] == rows_of(again)


@pytest.mark.parametrize(("in_time", "late", "told"), [(0, 30, 2), (20, 1, 0)])
def test_many_late_rewards_are_said_and_not_every_time(store, clock, in_time, late, told):
    bandit = opened(store, clock, reward_wait=10)
    decisions = [bandit.decide() for _ in range(late)]
    for _ in range(in_time):
        bandit.reward(bandit.decide().id, 1.0)
    clock.now += 11
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        assert {bandit.reward(one.id, 1.0).status for one in decisions} == {"late"}
    assert [one.category for one in found] == [LateRewardWarning] * told
