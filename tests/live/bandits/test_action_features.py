"""Bandits whose choices have features."""

import json

import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest
from refusals import raises_code

from submax.core.rewards.continuous import Continuous
from submax.evaluation.choosing.learning import learn
from submax.evaluation.logs.log import Log
from submax.live.bandits.open import open_bandit
from submax.live.log.export import Export
from submax.schema.learned import Learned

WAIT, ROWS = 10.0, 120
POLICY = {"kind": "posterior-submax", "estimator": {"kind": "bayesian-features", "features": 24}}
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


@pytest.fixture
def opened(store, clock):
    def opened(**given):
        usual = {"background": False, "clock": clock, "rng": np.random.default_rng(7)}
        return open_bandit(store, **{**usual, "reward_wait": WAIT, **given})

    return opened


def fed(bandit, clock, rows=ROWS):
    """With a version that was learned from uniform decisions: twice the price earns twice."""
    for number in range(rows):
        decision = bandit.decide({"x": number % 7})
        name = decision.action if isinstance(decision.action, str) else decision.action["song"]
        bandit.reward(decision.id, PRICES[name] / 10 + 0.01 * (number % 3))
    clock.now += WAIT + 1
    assert bandit.refit()
    return bandit


def fed_without_context(bandit, clock, rows=40):
    for number in range(rows):
        name = list(PRICES)[number % len(PRICES)]
        decision = bandit.decide(eligible=[name], id=str(number))
        bandit.reward(decision.id, float(number % 3 == 0))
    clock.now += WAIT + 1
    assert bandit.refit()
    return bandit


def probabilities(bandit, context):
    policy, model = bandit._live_state.loaded(1)
    return policy.probabilities(model.state, context[None])


def share_of(bandit, name, decisions=60):
    return sum(bandit.decide({"x": n % 7}).action == name for n in range(decisions)) / decisions


@pytest.mark.parametrize("kind", ["posterior-submax", "adaptive"])
def test_a_new_choice_starts_from_what_is_known_of_similar_ones(opened, clock, kind):
    given = {**DECLARED, "policy": {**POLICY, "kind": kind}}
    bandit = fed(opened(**given, action_features=FEATURES), clock)
    bandit.add("F", features=NEW)
    bandit.refit()
    assert share_of(bandit, "F") > 0.5


def test_so_does_a_choice_of_a_slot(opened, clock):
    slots = {"song": list(PRICES), "layout": ["wide", "narrow"]}
    given = {**DECLARED, "actions": slots, "guard_rails": {"burn_in": 2 * ROWS}}
    bandit = opened(**given, action_features={"song": FEATURES})
    fed(bandit, clock, 2 * ROWS)
    bandit.add("F", slot="song", features=NEW)
    bandit.refit()
    chosen = [bandit.decide({"x": number % 7}).action["song"] for number in range(60)]
    assert chosen.count("F") > 30


def test_without_features_nothing_is_expected_of_it(opened, clock):
    bandit = fed(opened(**DECLARED), clock)
    bandit.add("F")
    bandit.refit()
    assert share_of(bandit, "F") < 0.1


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


def test_declared_again_features_must_be_the_same_or_left_out(opened):
    opened(**DECLARED, action_features=FEATURES)
    opened(**DECLARED)
    opened(action_features=FEATURES)
    with raises_code("invalid-input"):
        opened(action_features={**FEATURES, "A": NEW})


def test_bad_features_are_refused_and_change_nothing(opened):
    bandit = opened(**DECLARED, action_features=FEATURES)
    before = bandit.menu
    with raises_code("invalid-input"):
        bandit.add("F", features={"price": 1.0})
    with raises_code("invalid-input"):
        bandit.add("F", features={"price": float("nan"), "genre": "rock"})
    with raises_code("invalid-input"):
        bandit.add("F", features=[1.0])
    assert bandit.menu == before


def test_a_bandit_is_not_declared_with_features_of_unknown_arms(tmp_path):
    with raises_code("invalid-input"):
        open_bandit(tmp_path / "new.db", actions=["A"], action_features={"Z": {"price": 1.0}})
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize("policy", ["rcp-submax", "rcp-adaptive", "thompson-1-1"])
def test_without_a_context_they_are_ignored(opened, clock, policy):
    given = {"actions": list(PRICES), "policy": policy}
    bandit = fed_without_context(opened(**given, action_features=FEATURES), clock)
    other = open_bandit(":memory:", **given, background=False, clock=clock, reward_wait=WAIT)
    fed_without_context(other, clock)
    assert bandit.versions()[0].rows_hash == other.versions()[0].rows_hash
    context = np.zeros((1, 1), dtype=np.float32)[:, :0]
    found = [probabilities(one, context) for one in (bandit, other)]
    np.testing.assert_array_equal(*found)


def test_an_export_a_learned_policy_and_its_bandit_know_the_features(opened, clock, tmp_path):
    bandit = fed(opened(**DECLARED, action_features=FEATURES), clock)
    Export(bandit.store, "default").write(tmp_path / "log.parquet")
    said = json.loads(pq.read_schema(tmp_path / "log.parquet").metadata[b"submax"])
    assert said["menu"]["slots"][0]["choices"][1]["features"] == FEATURES["B"]
    log = Log.read(tmp_path / "log.parquet")
    assert log.schema.menu.features == FEATURES
    learn(log, POLICY).write(tmp_path / "policy.safetensors")
    learned = Learned.read(tmp_path / "policy.safetensors")
    assert learned.schema == log.schema
    with open_bandit(":memory:", learned=learned, background=False) as started:
        assert started.menu == learned.schema.menu
        started.add("F", features=NEW)
        started.refit()
        assert share_of(started, "F") > 0.5


def test_a_learned_policy_with_other_features_is_refused(opened, clock):
    bandit = fed(opened(**DECLARED, action_features=FEATURES), clock)
    learned = Learned.of(
        bandit.settings.schema(bandit.menu),
        POLICY,
        [bandit.ledger().rows.columns()],
        msgspec.convert({"log": "x", "rows": ROWS}, Learned.__annotations__["origin"]),
    )
    other = {**FEATURES, "A": NEW}
    with raises_code("invalid-input"):
        open_bandit(":memory:", learned=learned, background=False, action_features=other)
