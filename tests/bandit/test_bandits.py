"""What every bandit does, in memory and in a store."""

import math
from itertools import count

import numpy as np
import pytest
from refusals import raises_code

from submax.bandit.bandit import Bandit
from submax.bandit.decision import Decision
from submax.core.rewards import Continuous, Discrete

WAIT, ARMS = 10.0, ["A", "B", "C"]
NUMBERS = count()
RAILS = {"holdout": 0.4, "baseline": "A"}


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def made(request, tmp_path, clock, opened):
    """Makes a bandit of each kind."""

    def made(**others):
        if request.param == "memory":
            return Bandit(**{"actions": ARMS, "reward_wait": WAIT, "clock": clock, **others})
        name = f"bandit{next(NUMBERS)}"
        if request.param == "sqlite":
            return opened(tmp_path / f"{name}.db", name=name, **others)
        return opened(request.getfixturevalue("postgres_address"), name=name, **others)

    return made


def matured(bandit):
    return {name: number for name, number in bandit.counts().items() if number}


def test_the_same_id_gives_the_same_decision(made):
    bandit = made(context={"age": float}, policy={"kind": "linucb"})
    first = bandit.decide({"age": 30}, id="one", eligible=["B"])
    bandit.retire("B")
    for context, eligible in (({"age": 30}, None), ({"age": 99}, None), ({"age": 1}, ["A"])):
        again = bandit.decide(context, id="one", eligible=eligible)
        assert (again.id, again.action, again.propensity) == ("one", "B", first.propensity)
        assert again.repeated
    one, two = bandit.decide_many([{"id": "same", "context": {"age": 1}}] * 2)
    assert (one.action, one.repeated, two.repeated) == (two.action, False, True)
    assert matured(bandit) == {"decisions": 2}


def test_a_reward_again_changes_nothing_and_another_one_is_a_conflict(made, clock):
    bandit = made()
    ids = [bandit.decide().id for _ in range(3)]
    assert not bandit.reward(ids[1], 1.0).repeated
    for value in (1.0, 1, True):
        receipt = bandit.reward(ids[1], value)
        assert (receipt.status, receipt.repeated) == ("accepted", True)
    with raises_code("conflict"):
        bandit.reward(ids[1], 0.0)
    assert bandit.reward(ids[1], 0.0, key="other").status == "accepted"
    receipts = bandit.reward_many([{"id": one, "value": 0.0} for one in ids])
    assert [one.status for one in receipts] == ["accepted", "conflict", "accepted"]
    clock.now += WAIT
    found = {"decisions": 3, "rewards": 4, "matured": 3, "learned": 3}
    assert matured(bandit) == found


BAD_IDS = ["", "with space", "nul\x00", "line\n", "é", "\ud800", "x" * 129, 5, True, b"bytes"]


@pytest.mark.parametrize("bad", BAD_IDS, ids=lambda bad: f"{bad!a:.20}")
def test_an_id_or_key_that_cannot_be_kept_is_refused_and_nothing_is_written(made, bad):
    bandit = made()
    for write in (
        lambda: bandit.decide(id=bad),
        lambda: bandit.decide(unit=bad),
        lambda: bandit.reward(bad, 1.0),
        lambda: bandit.reward("one", 1.0, key=bad),
        lambda: bandit.activate(bad),
        lambda: bandit.decide_many([{}, {"id": bad}]),
        lambda: bandit.reward_many([{"id": "one", "value": 1.0}, {"id": bad, "value": 1.0}]),
        lambda: bandit.reward(Decision("one", "A", 1.0, 0), 1.0),
    ):
        with raises_code("invalid-input"):
            write()
    assert matured(bandit) == {}


NO_REWARDS = [math.nan, -math.inf, "1", None, [1.0], 1j, 10**400, 1e300]
OUTSIDE = {
    "binary": [0.5, 2, -1],
    "counts": [-1, 0.5],
    Continuous(0.0, 5.0): [-0.1, 5.1],
    Discrete((0.0, 1.0, 5.0)): [2, 4.999],
    "continuous": [],
}


@pytest.mark.parametrize("rewards", OUTSIDE, ids=str)
def test_a_reward_outside_the_scale_is_refused_and_nothing_is_written(made, rewards):
    # Rewards that are summed must themselves be on the scale.
    combine = "sum" if rewards in ("counts", "continuous") else "last"
    bandit = made(rewards=rewards, combine=combine, policy={"kind": "epsilon-greedy"})
    for value in [*NO_REWARDS, *OUTSIDE[rewards]]:
        with raises_code("invalid-input"):
            bandit.reward("one", value)
        with raises_code("invalid-input"):
            bandit.reward_many([{"id": "one", "value": 1.0}, {"id": "two", "value": value}])
    assert matured(bandit) == {}


@pytest.mark.parametrize(
    ("request_", "parameter"),
    [
        ({"context": {"age": "old"}}, "age"),
        ({"context": {"age": math.nan}}, "age"),
        ({"context": 5}, None),
        ({"context": {"age": 1, "more": 2}}, "more"),
        ({"context": {}}, "age"),
        ({"context": {"age": 1}, "eligible": ["Z"]}, "choice"),
        ({"context": {"age": 1}, "eligible": []}, "eligible"),
        ({"context": {"age": 1}, "activate": 1}, "activate"),
    ],
    ids=repr,
)
def test_a_bad_request_is_refused_and_those_beside_it_are_not_written(made, request_, parameter):
    bandit = made(context={"age": float}, policy={"kind": "linucb"})
    with raises_code("invalid-input", parameter):
        bandit.decide(**request_)
    with raises_code("invalid-input", parameter):
        bandit.decide_many([{"context": {"age": 1}}, request_])
    assert matured(bandit) == {}


def test_numbers_of_numpy_are_numbers(made):
    bandit = made(context={"age": float}, policy={"kind": "linucb"})
    for number in (np.float32(1), np.int64(1), np.bool_(True)):
        decision = bandit.decide({"age": number})
        assert bandit.reward(decision.id, number).status == "accepted"


def test_rewards_may_come_early_late_or_never(made, clock):
    if isinstance(bandit := made(), Bandit):
        with raises_code("not-found"):
            bandit.reward("early", 1.0)
    else:
        bandit = made(quarantine=100)
        for name in ("early", "never"):
            assert bandit.reward(name, 1.0).status == "quarantined"
    bandit.decide(id="early")
    assert bandit.reward("early", 1.0).repeated != isinstance(bandit, Bandit)
    for place in range(9):
        bandit.decide(id=f"d{place}")
        bandit.reward(f"d{place}", 1.0)
    bandit.decide(id="late")
    clock.now += WAIT
    assert matured(bandit)["matured"] == 11
    assert bandit.activate("late").status in ("accepted", "late")
    clock.now += 100
    found = matured(bandit)
    assert (found["learned"], found["by default"]) == (11, 1)
    assert found.get("orphans", 0) == (not isinstance(bandit, Bandit))


def test_only_what_was_carried_out_is_learned_from(made, clock):
    bandit = made()
    for name in ("yes", "no"):
        bandit.decide(id=name, activate=False)
        bandit.reward(name, 1.0)
    assert bandit.activate("yes").status == "accepted"
    assert bandit.activate("yes").repeated
    with raises_code("not-found"):
        bandit.activate("unknown")
    clock.now += WAIT
    found = matured(bandit)
    assert (found["learned"], found["never activated"]) == (1, 1)


def test_without_a_wait_a_decision_matures_at_its_reward(made, clock):
    bandit = made(reward_wait=0, no_reward_after=60)
    for place in range(4):
        bandit.decide(id=f"d{place}")
    bandit.reward("d2", 1.0)
    clock.now += 1
    assert matured(bandit)["learned"] == 1
    clock.now += 60
    found = matured(bandit)
    assert (found["learned"], found["by default"]) == (4, 3)


def test_named_rewards_are_one_reward(made, clock):
    bandit = made(rewards={"click": 1, "buy": 20}, policy={"kind": "epsilon-greedy"})
    one = bandit.decide(eligible=["A"])
    bandit.reward(one.id, 1, name="click")
    bandit.reward(one.id, 1, name="buy")
    bandit.decide(eligible=["A"])
    clock.now += WAIT
    assert bandit.arms()[0].reward_rate == pytest.approx(10.5)
    with raises_code("unknown-reward-name"):
        bandit.reward(one.id, 1, name="sale")


def test_choices_come_and_go_by_slot(made):
    bandit = made(actions={"title": ["A", "B", "C"], "layout": ["wide", "narrow"]})
    bandit.add("tall", slot="layout")
    bandit.retire("A", slot="title")
    for change, name, code in (
        (bandit.pause, "B", "invalid-input"),
        (lambda one: bandit.add(one, slot="layout"), "tall", "conflict"),
    ):
        with raises_code(code):
            change(name)
    seen = {tuple(bandit.decide().action.values()) for _ in range(300)}
    assert {title for title, _ in seen} == {"B", "C"}
    assert {layout for _, layout in seen} == {"wide", "narrow", "tall"}
    statuses = {(one.slot, one.choice): one.status for one in bandit.arms()}
    assert statuses["title", "A"] == "retired"


def test_a_bandit_is_paused_archived_and_resumed(made, clock):
    bandit = made(guard_rails=RAILS)
    bandit.pause()
    assert {bandit.decide().action for _ in range(20)} == {"A"}
    shown = bandit.decide().id
    bandit.archive()
    calls = [bandit.decide, lambda: bandit.reward(shown, 1.0), lambda: bandit.activate(shown)]
    for call in calls:
        with raises_code("archived"):
            call()
    bandit.resume()
    bandit.pause("A")
    assert not any(bandit.decide().holdout for _ in range(20))
    assert any("'A'" in sentence for sentence in bandit.notices())
    clock.now += WAIT
    found = matured(bandit)
    assert (found["paused"], found["learned"]) == (21, 20)


@pytest.mark.parametrize("sticky", ["version", 100.0])
def test_units_keep_their_action_their_propensity_and_their_group(made, sticky):
    rails = {**RAILS, "control": "B", "control_share": 0.2}
    policy = {"kind": "linucb"}
    bandit = made(context={"age": float}, policy=policy, guard_rails=rails, sticky=sticky)
    for unit in range(40):
        drawn = bandit.decide_many(
            [{"context": {"age": age}, "unit": f"u{unit}"} for age in range(3)]
        )
        drawn.append(bandit.decide({"age": 9}, unit=f"u{unit}"))
        assert len({(one.action, one.holdout) for one in drawn}) == 1
        assert [one.propensity for one in drawn] == pytest.approx([drawn[0].propensity] * 4)


@pytest.mark.parametrize(
    ("changes", "code", "parameter"),
    [
        ({"guard_rails": {"minimum": 0.5}}, "guard-rail", "minimum"),
        ({"guard_rails": {"control": "B"}}, "guard-rail", "control_share"),
        ({"guard_rails": {"floor": 0.3}}, "invalid-input", None),
        ({"combine": "sum"}, "invalid-input", "combine"),
        ({"actions": ["A"]}, "invalid-input", "actions"),
        ({"refit_rows": 0}, "invalid-input", "refit_rows"),
        ({"colour": "red"}, "invalid-input", None),
        ({"status": "asleep"}, "invalid-input", "status"),
        ({}, "invalid-input", None),
    ],
)
def test_settings_change_all_or_none(made, changes, code, parameter):
    bandit = made(guard_rails=RAILS)
    before = bandit.settings
    with raises_code(code, parameter):
        bandit.set(seed=5, **changes) if changes else bandit.set()
    assert bandit.settings == before
    bandit.set(seed=5, guard_rails={"minimum": 0.1})
    bandit.set(guard_rails={"burn_in": 3})
    rails = bandit.settings.guard_rails
    assert (bandit.settings.seed, rails.minimum, rails.burn_in) == (5, 0.1, 3)


@pytest.mark.parametrize("wait", [0.0, WAIT])
def test_a_store_says_what_a_bandit_in_memory_says(place, wait, clock, opened):
    """Counts, arms with their intervals and lift, whatever was summed when."""
    declared = {
        "actions": ARMS,
        "reward_wait": wait,
        "policy": {"kind": "epsilon-greedy", "epsilon": 1.0},
        "guard_rails": {**RAILS, "control": "B", "control_share": 0.3},
        "sticky": "none",
    }
    one = Bandit(clock=clock, rng=np.random.default_rng(1), **declared)
    two = opened(place, name="bandit", rng=np.random.default_rng(1), **declared)
    for number in range(150):
        call = {"id": f"d{number}", "unit": f"u{number % 60}", "activate": number % 7 != 0}
        if number == 90:
            for bandit in (one, two):
                bandit.set(guard_rails={"holdout": 0.5})
        drawn = {bandit.decide(**call).action for bandit in (one, two)}
        assert len(drawn) == 1
        for bandit in (one, two):
            if number % 4 < 3:
                bandit.reward(f"d{number}", float(number % 2))
        clock.now += 1
        if number % 23 == 0:
            two.summarize()
    clock.now += WAIT
    with two:
        mine, others = matured(one), matured(two)
        for name in ("activations", "late activations"):
            mine.pop(name, None)
        assert mine == others
        for arm, other in zip(one.arms(), two.arms(), strict=True):
            for name in ("decisions", "rows", "reward_rate", "low", "high"):
                assert getattr(arm, name) == pytest.approx(getattr(other, name)), name
        for report, other in zip(one.lift(), two.lift(), strict=True):
            assert report.estimate == pytest.approx(other.estimate)
            assert (report.decisions, report.decisions_of_group) == (
                other.decisions,
                other.decisions_of_group,
            )
