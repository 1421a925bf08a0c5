"""Bandits whose choices have features."""

import pytest
from refusals import raises_code

import submax
from submax.bandit.durable import open_bandit
from submax.core.rewards import Continuous
from submax.evaluation.learning import learn
from submax.evaluation.log import Log
from submax.schema.trained_policy import TrainedPolicy

WAIT, ROWS = 10.0, 120
POLICY = {"kind": "posterior-submax", "features": 24}
PRICES = {"A": 1.0, "B": 2.0, "C": 3.0, "D": 4.0, "E": 5.0}
FEATURES = {name: {"price": price, "genre": "rock"} for name, price in PRICES.items()}
NEW = {"price": 6.0, "genre": "jazz"}
DECLARED = {
    "actions": list(PRICES),
    "context": {"x": float},
    "policy": POLICY,
    "rewards": Continuous(),
    "guard_rails": {"burn_in": ROWS},
}


def fed(bandit, clock, rows=ROWS):
    """With a version that was learned from uniform decisions: twice the price earns twice."""
    for number in range(rows):
        decision = bandit.decide({"x": number % 7})
        bandit.reward(decision.id, PRICES[song(decision)] / 10 + 0.01 * (number % 3))
    clock.now += WAIT + 1
    assert bandit.refit()
    return bandit


def song(decision):
    return decision.action if isinstance(decision.action, str) else decision.action["song"]


def share_of(bandit, name, decisions=60):
    return sum(song(bandit.decide({"x": n % 7})) == name for n in range(decisions)) / decisions


@pytest.mark.parametrize(
    ("kind", "slot"), [("posterior-submax", ""), ("adaptive", ""), ("posterior-submax", "song")]
)
def test_a_new_choice_starts_from_what_is_known_of_similar_ones(opened, clock, kind, slot):
    policy = {"kind": "adaptive", "policy": POLICY} if kind == "adaptive" else POLICY
    given = {**DECLARED, "policy": policy, "action_features": FEATURES}
    if slot:
        given["actions"] = {"song": list(PRICES), "layout": ["wide", "narrow"]}
        given["action_features"] = {"song": FEATURES}
        given["guard_rails"] = {"burn_in": 2 * ROWS}
    bandit = fed(opened(**given), clock, 2 * ROWS if slot else ROWS)
    bandit.add("F", features=NEW, ramp=0, **({"slot": slot} if slot else {}))
    bandit.refit()
    assert share_of(bandit, "F") > 0.5


def test_what_was_declared_and_added_stands_after_a_restart(tmp_path):
    place = tmp_path / "shop.db"
    given = {**DECLARED, "action_features": FEATURES, "background": False}
    with open_bandit(place, **given) as bandit:
        bandit.add("F", features=NEW)
        before = bandit.menu
    with open_bandit(place, background=False) as again:
        assert again.menu == before
        assert again.menu.features["F"] == NEW
    with open_bandit(place, **given) as again:
        assert again.menu == before
    with raises_code("invalid-input", "action_features"):
        open_bandit(place, background=False, action_features={**FEATURES, "A": NEW})


@pytest.mark.parametrize("policy", ["rcp-submax", "rcp-adaptive", "thompson-1-1"])
def test_without_a_context_they_are_ignored(policy):
    found = []
    for features in (None, FEATURES):
        bandit = submax.Bandit(list(PRICES), policy=policy, action_features=features, seed=1)
        for number in range(40):
            bandit.reward(bandit.decide().id, float(number % 3 == 0))
        found.append([one.probability for one in bandit.arms()])
    assert found[0] == found[1]


def test_an_export_a_learned_policy_and_its_bandit_know_the_features(opened, clock, tmp_path):
    bandit = fed(opened(**DECLARED, action_features=FEATURES), clock)
    bandit.export(tmp_path / "log.parquet")
    log = Log.read(tmp_path / "log.parquet")
    assert log.schema.menu.features == FEATURES
    learn(log, POLICY).write(tmp_path / "policy.safetensors")
    learned = TrainedPolicy.read(tmp_path / "policy.safetensors")
    assert learned.schema == log.schema
    with open_bandit(":memory:", learned=learned, background=False) as started:
        assert started.menu == learned.schema.menu
        started.add("F", features=NEW)
        started.refit()
        assert share_of(started, "F") > 0.5
    other = {**FEATURES, "A": NEW}
    with raises_code("invalid-input"):
        open_bandit(":memory:", learned=learned, background=False, action_features=other)
