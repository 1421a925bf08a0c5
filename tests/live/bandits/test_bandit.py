import logging
import math
import sys
import threading
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from refusals import raises_code

from submax.core.errors import ConflictError, InputError, NotFoundError
from submax.core.rewards.continuous import Continuous
from submax.core.rewards.counts import Counts
from submax.core.rewards.discrete import Discrete
from submax.live.bandits.open import open_bandit
from submax.live.declaring.declare import ContextIgnoredWarning
from submax.live.log.bandits import log_stream, model_name, settings_stream
from submax.live.log.records import DECISION, REWARD, DecisionMade, RewardGiven, body_of
from submax.live.store.memory_store import MemoryStore
from submax.live.store.sqlite_store import SQLiteStore
from submax.policies import make_policy, presets
from submax.policies.classic.thompson import Thompson
from submax.schema.model import Model, hash_of
from submax.testing import ManualClock

FILE = str(Path(__file__).parents[1] / "weighted.py")
WAIT = 10.0
ARMS = ["A", "B", "C"]
PAGE = {"title": ["A", "B", "C"], "layout": ["wide", "narrow"]}
FLIPS = 100
ANY_SCALE = {"kind": "epsilon-greedy"}
PATIENCE = 20.0
"""Seconds after which a test gives up on what runs beside it."""


@pytest.fixture
def opened(store, clock):
    def opened(store=store, **others):
        declaration = {"actions": ARMS, "policy": {"kind": "thompson"}, "reward_wait": WAIT}
        return open_bandit(store, **{"background": False, "clock": clock, **declaration, **others})

    return opened


def log_of(bandit):
    return bandit.store.read(log_stream(bandit.name))


def fed(bandit, clock, rows=30, first=0):
    """After decisions with rewards that have matured; the same each time."""
    for number in range(first, first + rows):
        bandit.decide(id=f"d{number}")
        bandit.reward(f"d{number}", float(number % 3 == 0))
    clock.now += WAIT
    return bandit


def versioned(bandit, clock, versions):
    for number in range(versions):
        fed(bandit, clock, first=1000 * number)
        assert bandit.refit().version == number + 1
    return bandit


def eventually(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


# Ids


def test_the_same_id_gives_the_same_decision(opened):
    bandit = opened(context={"age": float}, policy={"kind": "linucb"})
    first = bandit.decide({"age": 30}, id="one")
    assert not first.repeated
    for context, eligible in (({"age": 30}, None), ({"age": 99}, None), ({"age": 1}, ["A"])):
        again = bandit.decide(context, id="one", eligible=eligible)
        assert again.repeated
        assert (again.id, again.action, again.propensity) == ("one", first.action, first.propensity)
    assert len(log_of(bandit)) == 1


def test_the_same_id_gives_the_same_decision_after_opening_again(tmp_path):
    with open_bandit(tmp_path / "b.db", actions=ARMS, background=False) as bandit:
        before = bandit.decide_many([{"id": f"d{number}"} for number in range(50)])
    with open_bandit(tmp_path / "b.db", background=False) as bandit:
        after = bandit.decide_many([{"id": f"d{number}"} for number in range(50)])
        assert all(decision.repeated for decision in after)
        assert [(one.action, one.propensity) for one in before] == [
            (one.action, one.propensity) for one in after
        ]


def test_an_id_keeps_its_decision_when_its_arm_is_retired(opened):
    bandit = opened()
    decision = bandit.decide(id="one", eligible=["B"])
    bandit.retire("B")
    assert bandit.decide(id="one").action == decision.action == "B"


def test_the_same_id_twice_in_one_call_is_one_decision(opened):
    bandit = opened()
    one, two = bandit.decide_many([{"id": "same"}, {"id": "same"}])
    assert (one.action, one.repeated, two.action, two.repeated) == (
        one.action,
        False,
        one.action,
        True,
    )


def test_ids_that_are_not_given_are_unique_and_in_the_order_of_time(opened):
    bandit = opened()
    ids = []
    for _ in range(5):
        ids += [decision.id for decision in bandit.decide_many([{}] * 100)]
        time.sleep(0.002)
    assert len(set(ids)) == 500
    assert [one[:13] for one in ids] == sorted(one[:13] for one in ids)


# Rewards


def test_the_same_reward_again_changes_nothing(opened):
    bandit = opened()
    bandit.decide(id="one")
    assert not bandit.reward("one", 1.0).repeated
    before = log_of(bandit)
    for value in (1.0, 1, True):
        receipt = bandit.reward("one", value)
        assert (receipt.status, receipt.repeated) == ("accepted", True)
    assert log_of(bandit) == before


def test_another_reward_under_the_same_key_is_a_conflict_and_changes_nothing(opened):
    bandit = opened()
    bandit.decide(id="one")
    bandit.reward("one", 1.0)
    before = log_of(bandit)
    with raises_code("conflict"):
        bandit.reward("one", 0.0)
    assert log_of(bandit) == before
    assert bandit.reward("one", 0.0, key="other").status == "accepted"


def test_a_reward_of_a_decision_that_is_not_known_is_quarantined(opened):
    bandit = opened()
    assert bandit.reward("unknown", 1.0).status == "quarantined"


def test_activating_a_decision_that_is_not_known_is_refused(opened):
    bandit = opened()
    with raises_code("not-found"):
        bandit.activate("unknown")
    assert log_of(bandit) == []


# Bad input

BAD_IDS = [
    "",
    "with space",
    "tab\t",
    "nul\x00",
    "line\n",
    "é",
    "日本",
    "\ud800",
    "x" * 129,
    "x" * 1_000_000,
    5,
    1.5,
    True,
    b"bytes",
    ["list"],
]


@pytest.mark.parametrize("bad", BAD_IDS, ids=lambda bad: f"{bad!a:.20}")
def test_an_id_or_key_that_cannot_be_kept_is_refused_and_nothing_is_written(opened, bad):
    bandit = opened()
    for write in (
        lambda: bandit.decide(id=bad),
        lambda: bandit.reward(bad, 1.0),
        lambda: bandit.reward("one", 1.0, key=bad),
        lambda: bandit.activate(bad),
        lambda: bandit.decide_many([{}, {"id": bad}]),
        lambda: bandit.reward_many([{"id": "one", "value": 1.0}, {"id": bad, "value": 1.0}]),
    ):
        with pytest.raises(InputError) as refused:
            write()
        assert len(str(refused.value)) < 500
    assert log_of(bandit) == []


def test_an_id_that_is_none_is_refused_for_rewards(opened):
    bandit = opened()
    for write in (lambda: bandit.reward(None, 1.0), lambda: bandit.reward("one", 1.0, key="")):
        with pytest.raises(InputError):
            write()
    assert log_of(bandit) == []


NO_REWARDS = [math.nan, math.inf, -math.inf, "1", None, [1.0], 1j, 10**400, -(10**400), 1e300]
OUTSIDE = {
    "binary": [0.5, 2, -1],
    "counts": [-1, 0.5],
    Continuous(0.0, 5.0): [-0.1, 5.1],
    Discrete((0.0, 1.0, 5.0)): [2, 4.999],
    "continuous": [],
}


@pytest.mark.parametrize("rewards", OUTSIDE, ids=str)
def test_a_reward_outside_the_scale_is_refused_and_nothing_is_written(opened, rewards):
    bandit = opened(rewards=rewards, policy=ANY_SCALE)
    for value in [*NO_REWARDS, *OUTSIDE[rewards]]:
        for write in (
            lambda value=value: bandit.reward("one", value),
            lambda value=value: bandit.reward_many(
                [{"id": "one", "value": 1.0}, {"id": "two", "value": value}]
            ),
        ):
            with pytest.raises(InputError):
                write()
    assert log_of(bandit) == []


@pytest.mark.parametrize("rewards", ["counts", "continuous"])
def test_a_reward_that_is_summed_must_itself_be_on_the_scale(opened, clock, rewards):
    """Else one bad reward would keep every later version from being fitted."""
    bandit = opened(rewards=rewards, combine="sum", policy=ANY_SCALE)
    bandit.decide(id="one")
    for value in [*NO_REWARDS, *OUTSIDE[rewards]]:
        with pytest.raises(InputError):
            bandit.reward("one", value)
    for key in range(20):
        bandit.reward("one", 1e30, key=str(key))
    clock.now += WAIT
    assert bandit.refit().fitted.rows == 1


@pytest.mark.parametrize(
    "request_",
    [
        {"context": {"age": "old"}},
        {"context": {"age": math.nan}},
        {"context": {"age": 1, "more": 2}},
        {"context": 5},
        {"context": {}},
        {"context": {"age": 1}, "eligible": ["Z"]},
        {"context": {"age": 1}, "eligible": []},
        {"context": {"age": 1}, "activate": 1},
        {"context": {"age": 1}, "activate": None},
    ],
    ids=repr,
)
def test_a_bad_request_is_refused_and_those_beside_it_are_not_written(opened, request_):
    bandit = opened(context={"age": float}, policy={"kind": "linucb"})
    with pytest.raises(InputError):
        bandit.decide(**request_)
    with pytest.raises(InputError):
        bandit.decide_many([{"context": {"age": 1}}, request_, {"context": {"age": 2}}])
    assert log_of(bandit) == []


def test_a_call_has_from_one_to_a_thousand_requests(opened):
    bandit = opened()
    with raises_code("invalid-input"):
        bandit.decide_many([])
    with raises_code("invalid-input"):
        bandit.reward_many([])
    with raises_code("invalid-input"):
        bandit.decide_many([{}] * 1001)
    assert log_of(bandit) == []
    assert len(bandit.decide_many([{}] * 1000)) == 1000


def test_many_answers_are_in_the_order_of_the_requests(opened):
    bandit = opened()
    eligible = [[ARMS[number % 3]] for number in range(30)]
    made = bandit.decide_many(
        [{"id": f"d{number}", "eligible": one} for number, one in enumerate(eligible)]
    )
    assert [[one.action] for one in made] == eligible
    assert [one.id for one in made] == [f"d{number}" for number in range(30)]
    receipts = bandit.reward_many([{"id": f"d{number}", "value": 1} for number in range(40)])
    assert [one.status for one in receipts] == ["accepted"] * 30 + ["quarantined"] * 10


# Choices


def test_changes_of_the_menu_are_seen_at_once_and_after_opening_again(opened):
    bandit = opened()
    bandit.add("D")
    bandit.pause("A")
    bandit.retire("B")
    for one in (bandit, opened(), open_bandit(bandit.store, background=False)):
        assert {one.decide().action for _ in range(200)} == {"C", "D"}
    bandit.resume("A")
    assert {bandit.decide().action for _ in range(200)} == {"A", "C", "D"}


def test_a_retired_name_is_never_used_again(opened):
    opened().retire("B")
    bandit = opened()
    for change in (bandit.add, bandit.resume, bandit.pause, bandit.retire):
        with pytest.raises(ConflictError):
            change("B")
    assert bandit.menu.active == ((0, 2),)


def test_a_change_that_is_refused_is_not_written(opened):
    bandit = opened()
    before = bandit.store.read(settings_stream(bandit.name))
    for change, name in ((bandit.add, "A"), (bandit.pause, "Z"), (bandit.add, 5), (bandit.add, "")):
        with pytest.raises(InputError):
            change(name)
    assert bandit.store.read(settings_stream(bandit.name)) == before


def test_choices_of_slots_are_changed_by_slot(opened):
    bandit = opened(actions=PAGE)
    bandit.add("tall", slot="layout")
    bandit.retire("A", slot="title")
    with raises_code("invalid-input"):
        bandit.pause("B")
    seen = {tuple(bandit.decide().action.values()) for _ in range(500)}
    assert {title for title, _ in seen} == {"B", "C"}
    assert {layout for _, layout in seen} == {"wide", "narrow", "tall"}


def test_two_threads_that_add_the_same_name_add_it_once(opened):
    bandit = opened()
    outcomes = []

    def add():
        try:
            bandit.add("D")
            outcomes.append("added")
        except ConflictError:
            outcomes.append("refused")

    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["added"] + ["refused"] * 7
    assert len(bandit.menu.slots[0].choices) == 4


def test_a_version_learns_from_the_rows_of_active_choices_alone(opened, clock):
    bandit = fed(opened(policy={"kind": f"{FILE}:Weighted", "weights": [1, 1, 1]}), clock)
    chosen = [body_of(event, DecisionMade) for event in log_of(bandit) if event.kind == DECISION]
    bandit.retire("B")
    fitted = bandit.refit().fitted
    assert fitted.rows == 30
    data = bandit.store.get_blob(model_name(bandit.name, fitted.model))
    model = Model.from_bytes(data, fitted.model, bandit.policy)
    assert model.active == ((0, 2),)
    assert model.state.rows.tolist() == [sum(one.action != [1] for one in chosen)]


# Versions


def test_nothing_is_fitted_where_nothing_is_new(opened, clock):
    bandit = opened()
    assert not bandit.refit()
    bandit.decide()
    assert not bandit.refit()
    fed(bandit, clock)
    assert bandit.refit().fitted.rows == 31
    assert not bandit.refit()
    assert [one.version for one in bandit.versions()] == [1]


@pytest.mark.parametrize("policy", ["thompson-1-1", "rcp-submax", "epsilon-greedy-0.1", "ucb1"])
def test_the_same_log_and_seed_give_the_same_version(opened, policy, seed):
    found = []
    for _ in range(2):
        clock = ManualClock()
        bandit = opened(
            MemoryStore(clock),
            clock=clock,
            policy=policy,
            seed=seed,
            rng=np.random.default_rng(seed),
        )
        fed(bandit, clock)
        found.append(bandit.refit().fitted)
    assert found[0] == found[1]


@pytest.mark.parametrize("policy", ["rcp-submax", "rcp-adaptive"])
def test_a_version_is_the_same_when_it_is_fitted_again_from_the_store(opened, clock, policy):
    bandit = fed(opened(policy=policy), clock)
    first = bandit.refit().fitted
    again = opened(policy=policy)
    assert again.ledger().rows.hash == first.rows_hash
    rows = again.ledger().rows.columns()
    schema = again.settings.schema(again.menu)
    model = Model.fitted(schema, again.policy, [rows], again.settings.seed, first.ahead)
    assert hash_of(model.to_bytes()) == first.model


def test_a_version_expects_as_many_decisions_as_came_since_the_last_and_those_under_way(
    opened, clock
):
    bandit = fed(opened(), clock, rows=30)
    assert bandit.refit().fitted.ahead == 30
    fed(bandit, clock, rows=12, first=100)
    for number in range(5):
        bandit.decide(id=f"open{number}")
    assert bandit.refit().fitted.ahead == 12 + 5


@pytest.mark.parametrize("rows", [0, 4])
def test_a_changed_menu_says_nothing_about_the_pace(opened, clock, rows):
    """Else the next version would try the new arm alone, for want of decisions to share out."""
    bandit = fed(opened(), clock, rows=300)
    assert bandit.refit().fitted.ahead == 300
    bandit.add("D")
    fed(bandit, clock, rows=rows, first=1000)
    assert bandit.refit().fitted.ahead == 300
    # Told of one decision ahead, all of these would be D.
    taken = {bandit.decide().action for _ in range(200)}
    assert "D" in taken
    assert len(taken) > 1


@pytest.mark.usefixtures("short_training")
def test_another_seed_gives_another_version_of_a_network(opened, clock):
    policy = {
        "kind": "neural-epsilon-greedy",
        "hidden": 4,
        "training": {"steps": 5, "batch": 8},
    }
    hashes = []
    for seed in (0, 0, 1):
        clock = ManualClock()
        bandit = opened(
            MemoryStore(clock),
            clock=clock,
            policy=policy,
            seed=seed,
            rng=np.random.default_rng(0),
        )
        hashes.append(fed(bandit, clock).refit().fitted.model)
    assert hashes[0] == hashes[1] != hashes[2]


def test_the_newest_version_decides_until_another_is_published(opened, clock):
    bandit = versioned(opened(), clock, 3)
    assert bandit.version == bandit.decide().version == 3
    assert bandit.publish(1) == bandit.version == bandit.decide().version == 1
    fed(bandit, clock, first=5000)
    assert bandit.refit().version == 4
    assert bandit.version == opened().version == 1
    assert bandit.publish() == bandit.version == 4
    fed(bandit, clock, first=6000)
    bandit.refit()
    assert bandit.version == opened().version == 5


def test_rolling_back_goes_to_the_version_before(opened, clock):
    bandit = versioned(opened(), clock, 3)
    assert bandit.roll_back() == bandit.version == 2
    fed(bandit, clock, first=5000)
    bandit.refit()
    assert bandit.version == opened().version == 2


def test_rolling_back_again_goes_further_back(opened, clock):
    bandit = versioned(opened(), clock, 3)
    assert [bandit.roll_back() for _ in range(3)] == [2, 1, 0]
    assert bandit.publish() == 3


def test_of_many_rewards_one_that_conflicts_is_told_and_the_others_are_kept(opened):
    bandit = opened()
    ids = [bandit.decide().id for _ in range(3)]
    bandit.reward(ids[1], 1.0)
    receipts = bandit.reward_many([{"id": one, "value": 0.0} for one in ids])
    assert [one.status for one in receipts] == ["accepted", "conflict", "accepted"]


def test_choices_are_not_added_beyond_what_the_guard_rails_can_hold(opened, monkeypatch):
    monkeypatch.setattr("submax.schema.menu.LISTED", 3)
    bandit = opened(guard_rails={"minimum": 0.1})
    with raises_code("guard-rail"):
        bandit.add("D")
    assert len(bandit.menu.active[0]) == 3


def test_rolling_back_the_first_version_leaves_none(opened, clock):
    bandit = opened()
    with raises_code("conflict"):
        bandit.roll_back()
    versioned(bandit, clock, 1)
    assert bandit.roll_back() == bandit.version == bandit.decide().version == 0


@pytest.mark.parametrize("version", [7, -1, "1", 1.5, math.nan])
def test_a_version_that_is_not_there_cannot_be_published(opened, clock, version):
    bandit = versioned(opened(), clock, 2)
    with pytest.raises(NotFoundError):
        bandit.publish(version)
    assert bandit.version == opened().version == 2


def model_of(bandit, version):
    fitted = next(one for one in bandit.versions() if one.version == version)
    return model_name(bandit.name, fitted.model)


def test_models_of_old_versions_are_dropped_but_not_the_one_that_decides(opened, clock):
    bandit = versioned(opened(keep_versions=2), clock, 1)
    bandit.publish(1)
    for number in range(2, 7):
        fed(bandit, clock, first=1000 * number)
        bandit.refit()
    kept = [n for n in range(1, 7) if bandit.store.get_blob(model_of(bandit, n)) is not None]
    assert kept == [1, 5, 6]
    assert [one.version for one in bandit.versions()] == [1, 2, 3, 4, 5, 6]
    with raises_code("not-found"):
        bandit.publish(3)
    assert bandit.version == 1


@dataclass
class Gated(MemoryStore):
    """Whoever reads the settings waits while the gate is shut."""

    gate: threading.Event = field(default_factory=threading.Event)
    waiting: threading.Event = field(default_factory=threading.Event)

    def read(self, stream, after=0, limit=10_000):
        if stream.endswith("/settings") and not self.gate.is_set():
            self.waiting.set()
            assert self.gate.wait(PATIENCE)
        return super().read(stream, after, limit)


def test_a_fit_that_comes_before_the_last_one_is_known_is_another_version(opened, clock):
    store = Gated(clock)
    store.gate.set()
    bandit = fed(opened(store), clock)
    store.gate.clear()
    first, second = threading.Thread(target=bandit.refit), threading.Thread(target=bandit.refit)
    first.start()
    assert store.waiting.wait(PATIENCE)
    fed(bandit, clock, first=1000)
    second.start()
    second.join(0.1)
    store.gate.set()
    first.join()
    second.join()
    assert [fitted.rows for fitted in bandit.versions()] == [30, 60]
    for fitted in bandit.versions():
        assert hash_of(store.get_blob(model_name(bandit.name, fitted.model))) == fitted.model
    assert (bandit.version, bandit.damaged) == (2, 0)


# Damage


def test_every_flipped_byte_of_a_model_is_detected_and_the_last_good_version_serves(
    opened, clock, seed, caplog
):
    bandit = versioned(opened(), clock, 2)
    name, rng = model_of(bandit, 2), np.random.default_rng(seed)
    whole = bandit.store.get_blob(name)
    for _ in range(FLIPS):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] ^= 1 << int(rng.integers(8))
        bandit.store.put_blob(name, bytes(damaged))
        caplog.clear()
        with caplog.at_level(logging.WARNING, "submax"):
            again = opened()
        assert (again.version, again.published, again.damaged) == (1, 2, 1)
        assert "version 2: the model is damaged" in caplog.text
        assert again.decide().version == 1
    bandit.store.put_blob(name, whole)
    assert (opened().version, opened().damaged) == (2, 0)


def test_a_version_that_is_damaged_cannot_be_published(opened, clock):
    bandit = versioned(opened(), clock, 2)
    bandit.store.put_blob(model_of(bandit, 1), b"nonsense")
    with raises_code("invalid-input"):
        bandit.publish(1)
    assert bandit.version == 2


def test_where_no_model_is_left_the_policy_begins_anew(opened, clock):
    bandit = versioned(opened(), clock, 2)
    for version in (1, 2):
        bandit.store.delete_blob(model_of(bandit, version))
    again = opened()
    assert (again.version, again.damaged) == (0, 2)
    assert again.decide().propensity == pytest.approx(1 / 3)
    fed(again, clock, first=9000)
    assert again.refit().version == again.version == 3


# Declaring again


@pytest.mark.parametrize(
    "rewards",
    ["binary", "counts", "continuous", Counts(), Continuous(-1.0, 2.5), Discrete((0.0, 1.0, 3.0))],
    ids=str,
)
def test_the_same_declaration_again_changes_nothing(opened, store, rewards):
    declaration = {
        "rewards": rewards,
        "context": {"age": {"default": 3}, "country": ("fr", "de")},
        "policy": {"kind": "epsilon-greedy", "epsilon": 0.2},
        "guard_rails": {"minimum": 0.1, "control": "A", "control_share": 0.2},
    }
    before = None
    for _ in range(3):
        with pytest.warns(ContextIgnoredWarning):
            opened(**declaration)
        before = before or store.read(settings_stream("default"))
    assert store.read(settings_stream("default")) == before


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("continuous", Continuous()),
        (Continuous(0.0, 1.0), {"kind": "continuous", "low": 0, "high": 1}),
        (Discrete((0.0, 1.0)), {"kind": "discrete", "values": [0, 1]}),
    ],
    ids=str,
)
def test_the_same_scale_in_other_words_is_the_same(opened, first, second):
    opened(rewards=first, policy=ANY_SCALE)
    opened(rewards=second, policy=ANY_SCALE)


@pytest.mark.parametrize(
    "other",
    [
        {"context": {"age": float}},
        {"rewards": "counts"},
        {"combine": "first"},
        {"reward_wait": 11.0},
        {"default_reward": 1.0},
        {"default_reward": None},
        {"quarantine": 5.0},
        {"actions": ["A", "B"]},
        {"actions": PAGE},
    ],
    ids=repr,
)
def test_what_would_change_the_meaning_of_the_log_cannot_be_declared_anew(opened, store, other):
    opened()
    before = store.read(settings_stream("default"))
    with raises_code("invalid-input"):
        opened(**other)
    assert store.read(settings_stream("default")) == before


def test_what_may_change_is_declared_anew_and_stays(opened, store):
    opened()
    changes = {
        "policy": "ucb1",
        "guard_rails": {"minimum": 0.1},
        "refit_rows": 7,
        "refit_seconds": 5.0,
        "seed": 3,
        "keep_versions": 4,
    }
    opened(**changes)
    settings = open_bandit(store, background=False).settings
    assert (settings.policy, settings.guard_rails.minimum) == ("ucb1", 0.1)
    assert (settings.refit_rows, settings.refit_seconds) == (7, 5.0)
    assert (settings.seed, settings.keep_versions) == (3, 4)


def test_another_policy_takes_over_with_what_was_learned(opened, clock):
    fed(opened(), clock).refit()
    bandit = opened(policy="ucb1")
    assert bandit.decide().version == 1
    fitted = bandit.refit().fitted
    assert (fitted.version, fitted.policy, fitted.rows) == (2, "ucb1", 30)


@pytest.mark.parametrize(
    "wrong",
    [
        {"default_reward": True},
        {"default_reward": "x"},
        {"default_reward": [0.0]},
        {"default_reward": 0.5},
        {"default_reward": math.nan},
        {"reward_wait": 0, "combine": "max"},
        {"reward_wait": 0, "no_reward_after": 0},
        {"reward_wait": 0, "no_reward_after": math.inf},
        {"no_reward_after": 60},
        {"learn_share": 0.1},
        {"reward_wait": -1.0},
        {"reward_wait": math.inf},
        {"reward_wait": "10"},
        {"reward_wait": 10**400},
        {"quarantine": 0},
        {"combine": "mean"},
        {"combine": 5},
        {"combine": "sum"},
        {"rewards": "text"},
        {"rewards": {"kind": "binary", "more": 1}},
        {"rewards": {"kind": "continuous", "low": 2, "high": 1}},
        {"rewards": {"kind": "discrete"}},
        {"rewards": 5},
        {"refit_rows": 0},
        {"refit_rows": 1.5},
        {"seed": -1},
        {"seed": 2**70},
        {"seed": np.int64(3)},
        {"keep_versions": 1},
        {"policy": "no-such"},
        {"policy": {"kind": "no-such"}},
        {"policy": {"kind": "epsilon-greedy", "epsilon": 3.0}},
        {"policy": {"kind": "epsilon-greedy", "epsilon": np.float64(0.5)}},
        {"policy": {"kind": "nowhere.py:Policy"}},
        {"policy": 5},
        {"polici": "ucb1"},
    ],
    ids=repr,
)
def test_a_declaration_that_makes_no_sense_is_refused_and_nothing_is_written(opened, store, wrong):
    with pytest.raises(InputError) as refused:
        opened(**wrong)
    assert "\n" not in str(refused.value)
    assert store.streams() == []


@pytest.mark.parametrize("name", ["", "A", "with space", "../up", "x" * 65, "é", 5, "a/b"])
def test_a_name_that_cannot_be_part_of_an_address_is_refused(opened, store, name):
    with raises_code("invalid-input"):
        opened(name=name)
    assert store.streams() == []


def test_a_bandit_that_is_not_there_needs_its_actions(store):
    with raises_code("invalid-input"):
        open_bandit(store, background=False)
    assert store.streams() == []


def test_two_bandits_share_a_store_and_nothing_else(opened, clock):
    first, second = opened(name="first"), opened(name="second", actions=["X", "Y"])
    first.decide(id="same")
    second.decide(id="same")
    first.reward("same", 1.0)
    second.reward("same", 0.0)
    clock.now += WAIT
    assert first.ledger().rows.columns().reward.tolist() == [1.0]
    assert second.ledger().rows.columns().reward.tolist() == [0.0]


def test_a_context_that_the_policy_ignores_is_said(opened):
    with pytest.warns(ContextIgnoredWarning, match="does not look at the context"):
        opened(context={"age": float})


def test_a_bandit_lives_in_a_file_of_its_name(tmp_path):
    with open_bandit(tmp_path / "Home Page.db", actions=ARMS, background=False) as bandit:
        assert bandit.name == "home-page"
        bandit.decide(id="one")
    with closing(SQLiteStore(tmp_path / "Home Page.db", read_only=True)) as store:
        assert store.streams() == ["home-page/log", "home-page/settings"]


# Beside the decisions


def test_versions_are_fitted_beside_after_so_many_rows():
    with open_bandit(
        ":memory:",
        actions=ARMS,
        policy={"kind": "thompson"},
        reward_wait=0.01,
        refit_rows=5,
        refit_seconds=1e6,
    ) as bandit:
        bandit.decide_many([{}] * 4)
        eventually(lambda: bandit.counts().get("matured") == 4)
        assert bandit.versions() == []
        bandit.decide()
        eventually(lambda: bandit.decide().version >= 1)
        assert not any(bandit.failures.values())


def test_versions_are_fitted_beside_after_some_time():
    with open_bandit(
        ":memory:",
        actions=ARMS,
        policy={"kind": "thompson"},
        reward_wait=0.01,
        refit_rows=10**6,
        refit_seconds=0.3,
    ) as bandit:
        bandit.decide()
        eventually(lambda: bandit.decide().version >= 1)


def test_another_handle_on_the_store_follows_changes_and_versions():
    store = MemoryStore()
    one = open_bandit(store, actions=ARMS, policy={"kind": "thompson"}, reward_wait=0.01)
    other = open_bandit(store, background=False)
    one.stop()
    follower = open_bandit(store, refit_rows=10**6)
    other.retire("A")
    eventually(lambda: follower.menu.active == ((1, 2),))
    other.decide()
    time.sleep(0.02)
    other.refit()
    eventually(lambda: follower.version == other.version == 1)
    follower.close()


@dataclass(frozen=True)
class Slow(Thompson):
    """Fits only when it is allowed to."""

    fitting: threading.Event = field(default_factory=threading.Event)
    allowed: threading.Event = field(default_factory=threading.Event)

    def update(self, state, feedback, rng):
        self.fitting.set()
        assert self.allowed.wait(PATIENCE)
        return super().update(state, feedback, rng)


def test_decisions_and_rewards_do_not_wait_for_a_fit():
    policy = Slow()
    with open_bandit(
        ":memory:", actions=ARMS, policy=policy, reward_wait=1.0, refit_rows=1
    ) as bandit:
        bandit.decide()
        assert policy.fitting.wait(PATIENCE)
        for _ in range(100):
            decision = bandit.decide()
            assert (decision.version, bandit.reward(decision.id, 1.0).status) == (0, "accepted")
        bandit.add("D")
        assert not policy.allowed.is_set()
        assert "D" in {bandit.decide().action for _ in range(200)}
        policy.allowed.set()
        eventually(lambda: bandit.decide().version >= 1)


@dataclass(frozen=True)
class Broken(Thompson):
    def update(self, state, feedback, rng):
        raise RuntimeError("cannot learn")


def test_a_policy_that_fails_to_learn_is_counted_and_decisions_go_on(caplog):
    with open_bandit(
        ":memory:", actions=ARMS, policy=Broken(), reward_wait=0.01, refit_rows=1
    ) as bandit:
        bandit.decide()
        eventually(lambda: any(bandit.failures.values()))
        assert bandit.decide().version == 0
    assert "cannot learn" in caplog.text


# Policies


def test_a_policy_object_decides_and_must_be_given_again(opened, store, clock):
    class Local(Thompson):
        """A policy whose class cannot be imported."""

    bandit = fed(opened(policy=Local(2.0, 5.0)), clock)
    assert bandit.refit().version == bandit.decide().version == 1
    with raises_code("invalid-input"):
        open_bandit(store, background=False)
    assert opened(policy=Local(2.0, 5.0)).decide().version == 1


def test_a_policy_object_that_can_be_written_is_found_again(opened, store, clock):
    bandit = fed(opened(policy=Thompson(2.0, 5.0)), clock)
    assert bandit.refit().version == 1
    again = open_bandit(store, background=False)
    assert again.decide().version == 1
    assert again.policy == Thompson(2.0, 5.0)


def test_a_policy_of_a_file_decides_and_is_found_again(opened, store, clock):
    policy = {"kind": f"{FILE}:Weighted", "weights": [1.0, 2.0, 5.0]}
    fed(opened(policy=policy), clock).refit()
    loaded = [name for name in sys.modules if name.startswith("submax_file_")]
    for name in loaded:
        del sys.modules[name]
    bandit = open_bandit(store, background=False)
    decision = bandit.decide()
    assert decision.version == 1
    assert decision.propensity == pytest.approx({"A": 1, "B": 2, "C": 5}[decision.action] / 8)


PLAIN = sorted(name for name, policy in presets().items() if not policy.facts.trains_models)
CONTEXT = {"age": float, "country": ["fr", "de"]}
DUEL = {"left": ["A", "B", "C"], "right": ["A", "B", "C"]}


@pytest.mark.filterwarnings("ignore::submax.live.declaring.declare.ContextIgnoredWarning")
@pytest.mark.filterwarnings("ignore::submax.core.running.fallback.FallbackWarning")
@pytest.mark.parametrize("context", [None, CONTEXT], ids=["plain", "context"])
@pytest.mark.parametrize(
    "policy",
    [
        *PLAIN,
        {
            "kind": "reward-conditioned",
            "estimator": {"kind": "cvae", "hidden": 4, "training": {"steps": 5, "batch": 8}},
            "strategy": "submax",
        },
    ],
    ids=lambda policy: policy if isinstance(policy, str) else policy["kind"],
)
def test_every_policy_decides_and_learns_live(opened, clock, seed, policy, context, request):
    if not isinstance(policy, str):
        request.getfixturevalue("short_training")
    rng = np.random.default_rng(seed)
    actions = DUEL if make_policy(policy).facts.needs_pairs else PAGE
    bandit = opened(actions=actions, policy=policy, context=context)

    def decide():
        age = float(rng.normal(40, 20))
        return bandit.decide(
            {"age": age, "country": "fr" if age > 40 else "de"} if context else None
        )

    for version in (1, 2):
        for _ in range(30):
            decision = decide()
            assert 0 < decision.propensity <= 1
            bandit.reward(decision.id, float(rng.random() < 0.3))
        clock.now += WAIT
        assert bandit.refit().version == version
        assert decide().version == version
    again = opened(actions=actions, policy=policy, context=context)
    assert (again.version, again.damaged) == (2, 0)
    model = bandit._live_state.serving.model
    read_back = again._live_state.serving.model
    assert model.active == read_back.active
    assert model.to_bytes() == read_back.to_bytes()


def test_what_is_learned_is_used(opened, clock, seed):
    bandit = opened(rng=np.random.default_rng(seed))
    for _ in range(5):
        for decision in bandit.decide_many([{}] * 100):
            bandit.reward(decision.id, float(decision.action == "B"))
        clock.now += WAIT
        bandit.refit()
    assert [decision.action for decision in bandit.decide_many([{}] * 20)] == ["B"] * 20


# Threads


def test_decisions_and_rewards_of_many_threads_are_all_there_once(tmp_path):
    told = []
    with open_bandit(tmp_path / "b.db", actions=ARMS, background=True) as bandit:

        def work(worker):
            for number in range(50):
                decision = bandit.decide(id=f"{worker}-{number}")
                bandit.reward(decision.id, float(number % 2))
                told.append((decision.id, decision.action, float(number % 2)))

        threads = [threading.Thread(target=work, args=(worker,)) for worker in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        events = log_of(bandit)
        actions = {
            event.key[2:]: bandit.menu.action(body_of(event, DecisionMade).action)
            for event in events
            if event.kind == DECISION
        }
        values = {
            event.about[2:]: body_of(event, RewardGiven).value
            for event in events
            if event.kind == REWARD
        }
        assert len(events) == 800
        assert sorted(told) == sorted((one, actions[one], values[one]) for one in actions)
