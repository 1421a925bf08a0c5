"""A policy that always takes one action earns the mean reward of this action."""

import numpy as np
import pytest
from refusals import raises_code

from submax.evaluation import Log, PartedLog, compare, compare_rewards


@pytest.fixture
def table(seed):
    rng = np.random.default_rng(seed)
    action = rng.choice(["A", "B", "C"], 900)
    chance = {"A": 0.2, "B": 0.5, "C": 0.4}
    reward = [float(rng.random() < chance[one]) for one in action]
    return {"action": action, "reward": np.array(reward), "propensity": np.full(900, 1 / 3)}


def test_every_action_earns_its_mean(table):
    found = compare(Log.read(table), ["always=*"], estimators=["snips"])
    assert found.policies() == ["logging policy", "always=A", "always=B", "always=C"]
    for action in "ABC":
        mean = table["reward"][table["action"] == action].mean()
        assert found.find(f"always={action}", "snips").value == pytest.approx(mean)
    # Nothing is learned, so that all rows are evaluated.
    assert found.find("always=A", "snips").diagnostics.rows == 900


def test_it_is_compared_with_others_under_names_of_the_caller(table):
    policies = {"first": "always=A", "random": np.full((900, 3), 1 / 3)}
    found = compare(Log.read(table), policies, estimators=["ips"], baseline="random")
    assert [one.policy for one in found.differences] == ["first"]


def test_all_actions_have_the_name_that_the_caller_gave(table):
    log = Log.read(table)
    found = compare(log, {"mine": "always=*"}, estimators=["ips"])
    assert found.policies() == ["logging policy", "mine=A", "mine=B", "mine=C"]
    both = compare(log, ["always=B", "always=*"], estimators=["ips"])
    assert both.policies() == ["logging policy", "always=B", "always=A", "always=C"]
    with raises_code("invalid-input"):
        compare(log, {"always=A": np.full((900, 3), 1 / 3), "always=*": "always=*"})


def test_several_rewards_and_parts_have_the_same_policies(table, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    pa = pytest.importorskip("pyarrow")
    pq.write_table(pa.table(table), tmp_path / "log.parquet", row_group_size=300)
    parted = PartedLog.open(tmp_path / "log.parquet", jobs=1)
    whole, parts = (
        compare(log, ["always=*"], estimators=["snips"], baseline="best")
        for log in (Log.read(table), parted)
    )
    assert [one.value for one in parts.differences] == pytest.approx(
        [one.value for one in whole.differences]
    )
    assert [one.level for one in parts.differences] == [one.level for one in whole.differences]
    assert parts.notes[-1] == whole.notes[-1]
    two = {**table, "click": table["reward"], "buy": table["reward"]}
    del two["reward"]
    log = Log.read(two, columns={"reward": ["click", "buy"]})
    by_reward = compare_rewards(log, ["always=*"], estimators=["snips"])
    assert by_reward.comparisons["buy"].policies() == whole.policies()


def test_an_unknown_action_is_named(table):
    with raises_code("invalid-input"):
        compare(Log.read(table), ["always=D"])


def test_slots_are_refused(table):
    slots = {**table, "action_title": table["action"], "action_layout": table["action"]}
    del slots["action"]
    with raises_code("invalid-input"):
        compare(Log.read(slots), ["always=*"])
