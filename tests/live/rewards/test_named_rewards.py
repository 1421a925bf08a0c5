import math

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import raises_code

import submax
from submax.live.archive.compacting.compaction import Compaction
from submax.live.archive.log_reader import LogReader
from submax.live.bandits.open import open_bandit
from submax.live.declaring.settings import Settings
from submax.live.log.export import Export
from submax.live.log.records import REWARD, RewardGiven, body_of
from submax.live.store.memory_store import MemoryStore
from submax.live.store.sqlite_store import SQLiteStore
from submax.schema.reward_parts import UNKNOWN_NAME
from submax.testing import ManualClock

NAMES = {"click": 1, "purchase": 20}


def opened(clock, store=None, **declared):
    return open_bandit(
        store or MemoryStore(clock),
        name="page",
        clock=clock,
        background=False,
        **{"actions": ["A", "B"], "rewards": NAMES, "reward_wait": 60, **declared},
    )


def learned_rewards(bandit, clock, wait=61):
    clock.now += wait
    return bandit.ledger().rows.columns().reward.tolist()


@pytest.mark.parametrize(
    ("combination", "came", "expected"),
    [
        ("sum", {"click": 1.0}, 1.0),
        ("sum", {"purchase": 1.0, "click": 1.0}, 21.0),
        ("max", {"click": 1.0, "purchase": 1.0}, 20.0),
        ("max", {"click": 1.0, "purchase": 0.0}, 1.0),
        ("first", {"click": 1.0, "purchase": 1.0}, 1.0),
        ("first", {"purchase": 1.0}, 20.0),
    ],
)
def test_the_combined_reward_is_learned_from(combination, came, expected):
    clock = ManualClock()
    rewards = {"kind": "named", "weights": NAMES, "combination": combination}
    bandit = opened(clock, rewards=rewards)
    decision = bandit.decide()
    for name, value in came.items():
        assert bandit.reward(decision.id, value, name=name).status == "accepted"
    assert learned_rewards(bandit, clock) == [expected]


def test_a_decision_without_any_of_them_has_the_default_reward():
    clock = ManualClock()
    bandit = opened(clock)
    bandit.decide()
    assert learned_rewards(bandit, clock) == [0.0]


@pytest.mark.parametrize(
    ("combine", "expected"), [("first", 1 + 20.0), ("last", 1 + 40.0), ("max", 1 + 60.0)]
)
def test_a_name_twice_follows_the_rule_for_repeated_rewards(combine, expected):
    clock = ManualClock()
    counted = {"kind": "named", "weights": NAMES, "each": "counts"}
    bandit = opened(clock, rewards=counted, combine=combine)
    decision = bandit.decide()
    bandit.reward(decision.id, 1, name="click")
    for number, value in enumerate((1, 3, 2)):
        bandit.reward(decision.id, value, name="purchase", key=f"order-{number}")
    assert learned_rewards(bandit, clock) == [expected]


def test_the_same_name_without_a_key_is_the_same_reward():
    clock = ManualClock()
    bandit = opened(clock)
    decision = bandit.decide()
    assert not bandit.reward(decision.id, 1, name="click").repeated
    assert bandit.reward(decision.id, 1, name="click").repeated
    with raises_code("conflict"):
        bandit.reward(decision.id, 0, name="click")
    assert learned_rewards(bandit, clock) == [1.0]


def test_a_table_of_names_is_one_reward():
    clock = ManualClock()
    bandit = opened(clock)
    decision = bandit.decide()
    assert bandit.reward(decision.id, {"click": 1, "purchase": 1}).status == "accepted"
    assert bandit.reward(decision.id, {"click": 1, "purchase": 1}).repeated
    with pytest.raises(submax.ConflictError):
        bandit.reward(decision.id, {"click": 1, "purchase": 0})
    assert learned_rewards(bandit, clock) == [21.0]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda bandit, visit: bandit.reward(visit, 1.0),
        lambda bandit, visit: bandit.reward(visit, 1.0, name="buy"),
        lambda bandit, visit: bandit.reward(visit, {"click": 1, "buy": 1}),
        lambda bandit, visit: bandit.reward(visit, {}),
        lambda bandit, visit: bandit.reward(visit, [1, 0]),
        lambda bandit, visit: bandit.reward(visit, 1.0, slot="click"),
        lambda bandit, visit: bandit.reward_many([{"id": visit, "value": 1, "name": "click"},
                                               {"id": visit, "value": 1, "name": "buy"}]),
    ],
)  # fmt: skip
def test_a_name_that_was_not_declared_is_refused_and_nothing_is_written(wrong):
    bandit = opened(ManualClock())
    decision = bandit.decide()
    before = bandit.store.appended("page/log")
    with raises_code("unknown-reward-name") as refused:
        wrong(bandit, decision.id)
    assert refused.value.code == UNKNOWN_NAME
    assert bandit.store.appended("page/log") == before
    assert bandit.decide().action in "AB"


def test_a_value_outside_the_scale_of_each_is_refused():
    bandit = opened(ManualClock())
    with raises_code("invalid-input"):
        bandit.reward(bandit.decide().id, 0.5, name="click")


def test_a_name_is_refused_if_none_was_declared():
    bandit = opened(ManualClock(), rewards="binary")
    with raises_code("unknown-reward-name") as refused:
        bandit.reward(bandit.decide().id, 1.0, name="click")
    assert refused.value.code == UNKNOWN_NAME


@pytest.mark.parametrize(
    ("rewards", "match"),
    [
        ({"low": 0.0, "high": 2.0}, "has no 'kind'"),
        ({}, "has no 'kind'"),
        ({"click": math.nan}, "finite"),
        ({"click": "1"}, "finite"),
        ({"click": 0, "view": 0}, "all weights"),
        ({"a name": 1}, "letters, digits"),
        ({"kind": "named"}, "table of 1 to 50 names"),
        ({"kind": "named", "weights": {"a": 1}, "combination": "mean"}, "unknown combination"),
        ({"kind": "named", "weights": {"a": 1}, "each": "binery"}, "unknown kind of rewards"),
        ({"kind": "named", "weights": {"a": 1}, "weight": {}}, "unknown key"),
        ("slots", "table of slots"),
    ],
)
def test_a_wrong_declaration_is_refused(rewards, match):
    with raises_code("invalid-input"):
        opened(ManualClock(), rewards=rewards)


@settings(max_examples=50, deadline=None)
@given(
    st.dictionaries(st.sampled_from("abcdef"), st.sampled_from([-3.0, 1.0, 2.0]), min_size=1),
    st.sampled_from(["sum", "max", "first"]),
    st.sampled_from(["binary", "counts", {"kind": "discrete", "values": [-1.0, 2.0]},
                     {"kind": "continuous", "low": -1.0, "high": 2.0}]),
    st.data(),
)  # fmt: skip
def test_the_scale_has_every_combined_reward(weights, combination, each, data):
    rewards = {"kind": "named", "weights": weights, "combination": combination, "each": each}
    parts = Settings.of({"actions": ["A", "B"], "rewards": rewards}).reward_parts
    values = [one for one in (-1.0, 0.0, 0.5, 1.0, 2.0) if parts.each_scale.contains(np.array(one))]
    names, value = st.sampled_from(sorted(weights)), st.sampled_from(values)
    came = data.draw(st.dictionaries(names, value, min_size=1))
    assert parts.scale.contains(np.array([parts.combined(came)])).all()


def test_bounds_follow_from_the_weights():
    declared = Settings.of({"actions": ["A"], "rewards": {"click": 1, "complaint": -5}})
    assert declared.scale == submax.Discrete((-5.0, -4.0, 0.0, 1.0))
    each = {"kind": "continuous", "low": 0.0, "high": 2.0}
    many = {"kind": "named", "weights": {"a": 3, "b": -1}, "each": each}
    assert Settings.of({"actions": ["A"], "rewards": many}).scale.bounds == (-2.0, 6.0)
    any_clicks = {"kind": "named", "weights": {"a": 1, "b": 1}, "combination": "max"}
    assert Settings.of({"actions": ["A"], "rewards": any_clicks}).scale == submax.Binary()


def test_without_a_wait_a_decision_matures_when_all_names_have_come():
    clock = ManualClock()
    bandit = opened(clock, reward_wait=0)
    decision, other = bandit.decide(), bandit.decide()
    bandit.reward(decision.id, 1, name="purchase")
    assert learned_rewards(bandit, clock) == []
    bandit.reward(decision.id, 1, name="click")
    bandit.reward(other.id, {"click": 1, "purchase": 0})
    assert learned_rewards(bandit, clock) == [21.0, 1.0]


def test_an_export_has_a_column_for_each_name(tmp_path):
    clock = ManualClock()
    bandit = opened(clock)
    first, second = bandit.decide(), bandit.decide()
    bandit.reward(first.id, 1, name="purchase")
    bandit.reward(second.id, {"click": 1, "purchase": 0})
    clock.now += 61
    bandit.ledger()
    third = bandit.decide()
    bandit.reward(third.id, 1, name="click")
    export = Export(bandit.store, "page")
    export.write(tmp_path / "log.parquet")
    export.write_rewards(tmp_path / "rewards.parquet")
    rows = pq.read_table(tmp_path / "log.parquet").to_pylist()
    found = [(row["reward"], row["reward_click"], row["reward_purchase"]) for row in rows]
    assert found == [(20.0, None, 1.0), (1.0, 1.0, 0.0), (1.0, 1.0, None)]
    rewards = pq.read_table(tmp_path / "rewards.parquet").to_pylist()
    assert [(row["key"], row["name"], row["value"]) for row in rewards] == [
        ("purchase", "purchase", 1.0),
        ("reward", "click", 1.0),
        ("reward", "purchase", 0.0),
        ("click", "click", 1.0),
    ]


def test_they_survive_a_restart_with_a_snapshot_and_the_archive(tmp_path):
    clock, path = ManualClock(), tmp_path / "page.db"
    with opened(clock, SQLiteStore(path, clock=clock), archive_after=1.0) as bandit:
        for _ in range(20):
            old = bandit.decide()
            bandit.reward(old.id, 1, name="click")
        clock.now += 100_000
        decision = bandit.decide()
        bandit.reward(decision.id, 1, name="purchase")
        bandit.ledger()
        events = [one for one in LogReader(bandit.store, "page").read(0) if one.kind == REWARD]
        Compaction(bandit.store, "page", bandit.settings, bandit.ledger(), clock.now).run()
        again = [one for one in LogReader(bandit.store, "page").read(0) if one.kind == REWARD]
        assert again == events[: len(again)]
        assert body_of(events[0], RewardGiven).parts == {"click": 1.0}
        bandit.snapshot()
    with opened(clock, SQLiteStore(path, clock=clock)) as bandit:
        bandit.reward(decision.id, 1, name="click")
        assert learned_rewards(bandit, clock)[-1] == 21.0


def test_a_saved_bandit_remembers_the_names_that_came(tmp_path):
    bandit = submax.Bandit(["A", "B"], rewards=NAMES, seed=1)
    decision = bandit.decide()
    bandit.reward(decision.id, 1, name="click")
    bandit.save(tmp_path / "bandit.safetensors")
    loaded = submax.Bandit.load(tmp_path / "bandit.safetensors")
    loaded.reward(decision.id, 1, name="purchase")
    assert loaded.refit().learned
    (tally,) = [one for one in loaded.ledger().tally.choices[0] if one.rows]
    assert tally.reward == 21.0
