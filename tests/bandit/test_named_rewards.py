import math
from functools import partial

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import raises_code
from stored import exported

import submax
from submax.bandit.settings import Settings

NAMES = {"click": 1, "purchase": 20}


@pytest.fixture
def opened(opened):
    return partial(opened, actions=["A", "B"], rewards=NAMES)


@pytest.mark.parametrize(
    ("given", "other", "expected"),
    [
        ({"value": 1, "name": "click"}, {"value": 0, "name": "click"}, 1.0),
        ({"value": {"click": 1, "purchase": 1}}, {"value": {"click": 1, "purchase": 0}}, 21.0),
    ],
    ids=["a name", "a table"],
)
def test_the_same_reward_without_a_key_is_given_once(opened, clock, given, other, expected):
    bandit = opened()
    decision = bandit.decide()
    assert not bandit.reward(decision.id, **given).repeated
    assert bandit.reward(decision.id, **given).repeated
    with raises_code("conflict"):
        bandit.reward(decision.id, **other)
    clock.now += 61
    assert [(row["status"], row["reward"]) for row in exported(bandit)] == [("learned", expected)]


@pytest.mark.parametrize(
    ("reward", "code"),
    [
        ({"value": 1.0}, "unknown-reward-name"),
        ({"value": 1.0, "name": "buy"}, "unknown-reward-name"),
        ({"value": {"click": 1, "buy": 1}}, "unknown-reward-name"),
        ({"value": {}}, "unknown-reward-name"),
        ({"value": [1, 0]}, "unknown-reward-name"),
        ({"value": 1.0, "slot": "click"}, "unknown-reward-name"),
        ({"value": 0.5, "name": "click"}, "invalid-input"),
    ],
)
def test_a_name_that_was_not_declared_is_refused_and_nothing_is_written(opened, reward, code):
    bandit = opened()
    decision = bandit.decide()
    before = bandit.counts()
    with raises_code(code):
        bandit.reward(decision.id, **reward)
    with raises_code(code):
        bandit.reward_many(
            [{"id": decision.id, "value": 1, "name": "click"}, {"id": decision.id, **reward}]
        )
    assert bandit.counts() == before
    without = opened(name="other", rewards="binary")
    with raises_code("unknown-reward-name"):
        without.reward(without.decide().id, 1.0, name="click")


@pytest.mark.parametrize(
    "rewards",
    [
        {"low": 0.0, "high": 2.0},
        {"click": math.nan},
        {"click": 0, "view": 0},
        {"a name": 1},
        {"kind": "named"},
        {"kind": "named", "weights": {"a": 1}, "combination": "max"},
        {"kind": "named", "weights": {"a": 1}, "weight": {}},
        "slots",
    ],
)
def test_a_wrong_declaration_is_refused(opened, rewards):
    with raises_code("invalid-input"):
        opened(rewards=rewards)


@settings(max_examples=50, deadline=None)
@given(
    st.dictionaries(st.sampled_from("abcdef"), st.sampled_from([-3.0, 1.0, 2.0]), min_size=1),
    st.sampled_from(["binary", "counts", {"kind": "discrete", "values": [-1.0, 2.0]},
                     {"kind": "continuous", "low": -1.0, "high": 2.0}]),
    st.data(),
)  # fmt: skip
def test_the_scale_has_every_combined_reward(weights, each, data):
    rewards = {"kind": "named", "weights": weights, "each": each}
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


def test_an_export_has_a_column_for_each_name(opened, clock, tmp_path):
    bandit = opened()
    first, second = bandit.decide(), bandit.decide()
    bandit.reward(first.id, 1, name="purchase")
    bandit.reward(second.id, {"click": 1, "purchase": 0})
    clock.now += 61
    third = bandit.decide()
    bandit.reward(third.id, 1, name="click")
    bandit.export(tmp_path / "log.parquet")
    rows = pq.read_table(tmp_path / "log.parquet").to_pylist()
    found = [(row["reward"], row["reward_click"], row["reward_purchase"]) for row in rows]
    assert found == [(20.0, None, 1.0), (1.0, 1.0, 0.0), (1.0, 1.0, None)]


def test_a_saved_bandit_remembers_the_names_that_came(tmp_path):
    bandit = submax.Bandit(["A", "B"], rewards=NAMES, seed=1)
    decision = bandit.decide()
    bandit.reward(decision.id, 1, name="click")
    bandit.save(tmp_path / "bandit.safetensors")
    loaded = submax.Bandit.load(tmp_path / "bandit.safetensors")
    loaded.reward(decision.id, 1, name="purchase")
    assert loaded.refit().learned
    (rate,) = [one.reward_rate for one in loaded.arms() if one.rows]
    assert rate == 21.0
