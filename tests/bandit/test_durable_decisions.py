import threading
from dataclasses import dataclass, field

import numpy as np
import pytest
from refusals import raises_code
from stored import fitted
from waiting import wait_until

from submax.bandit.declaring import audit_lines, bandit_names
from submax.bandit.durable import DAMAGED, open_bandit
from submax.bandit.reading import read_progress
from submax.bandit.store import open_store
from submax.core.errors import ContextIgnoredWarning
from submax.core.rewards import Continuous, Discrete
from submax.policies import make_policy, presets
from submax.policies.thompson import Thompson

WAIT = 10.0
ARMS = ["A", "B", "C"]
PAGE = {"title": ["A", "B", "C"], "layout": ["wide", "narrow"]}
ANY_SCALE = {"kind": "epsilon-greedy"}
PATIENCE = 60.0
"""Seconds after which a test gives up on what runs beside it."""


def fed(bandit, clock, rows=30, first=0):
    """After decisions with rewards that have matured; the same each time."""
    for number in range(first, first + rows):
        bandit.decide(id=f"d{number}")
        bandit.reward(f"d{number}", float(number % 3 == 0))
    clock.now += WAIT + 1
    return bandit


def test_sums_of_rewards_may_be_large(opened, clock):
    """Else one of them would keep every later version from being fitted."""
    bandit = opened(rewards="continuous", combine="sum", policy=ANY_SCALE)
    bandit.decide(id="one")
    for key in range(20):
        bandit.reward("one", 1e30, key=str(key))
    clock.now += WAIT + 1
    assert fitted(bandit).rows == 1


def test_a_call_has_from_one_to_a_thousand_requests(opened):
    bandit = opened()
    for requests in ([], [{}] * 1001):
        with raises_code("invalid-input"):
            bandit.decide_many(requests)
    with raises_code("invalid-input"):
        bandit.reward_many([])
    assert bandit.counts()["decisions"] == 0
    assert len(bandit.decide_many([{}] * 1000)) == 1000


# Versions


@pytest.mark.parametrize("rows", [0, 4])
def test_a_changed_menu_says_nothing_about_the_pace(opened, clock, rows):
    """Else the next version would try the new arm alone, for want of decisions to share out."""
    bandit = fed(opened(), clock, rows=300)
    assert fitted(bandit).ahead == 300
    bandit.add("D")
    fed(bandit, clock, rows=rows, first=1000)
    assert fitted(bandit).ahead == 300
    # Told of one decision ahead, all of these would be D.
    taken = {bandit.decide().action for _ in range(200)}
    assert "D" in taken
    assert len(taken) > 1
    # Later the pace is that of the decisions since the last version.
    clock.now += WAIT + 1
    assert fitted(bandit).ahead == 200


def set_model(bandit, version, model):
    bandit.store.execute(
        [("update version set model = :m where number = :n", {"m": model, "n": version})]
    )


# Damage


def test_every_flipped_byte_of_a_model_is_detected_and_the_last_good_version_serves(
    opened, clock, seed
):
    bandit, rng = opened(), np.random.default_rng(seed)
    for number in range(2):
        fed(bandit, clock, first=1000 * number)
        assert bandit.refit().version == number + 1
    ((whole,),) = bandit.store.select("select model from version where number = 2")
    for _ in range(40):
        damaged = bytearray(whole)
        damaged[rng.integers(len(whole))] ^= 1 << int(rng.integers(8))
        set_model(bandit, 2, bytes(damaged))
        again = opened()
        assert (again.version, again.published, again.failures.get(DAMAGED, 0)) == (1, 2, 1)
        assert again.decide().version == 1
    bandit.roll_back()
    with raises_code("invalid-input"):
        bandit.publish(2)
    assert bandit.version == 1
    set_model(bandit, 2, whole)
    assert bandit.publish(2) == opened().version == 2
    assert opened().failures.get(DAMAGED, 0) == 0
    # Where no model is left, the policy begins anew.
    for version in (1, 2):
        set_model(bandit, version, None)
    again = opened()
    assert again.version == 0
    assert again.failures[DAMAGED] >= 2
    assert again.decide().propensity == pytest.approx(1 / 3)
    fed(again, clock, first=9000)
    assert again.refit().version == 3


# Declaring again


@pytest.mark.parametrize(
    ("rewards", "again"),
    [
        ("binary", "binary"),
        ("continuous", Continuous()),
        (Continuous(0.0, 1.0), {"kind": "continuous", "low": 0, "high": 1}),
        (Discrete((0.0, 1.0)), {"kind": "discrete", "values": [0, 1]}),
    ],
    ids=str,
)
def test_the_same_declaration_again_changes_nothing(opened, store, rewards, again):
    declaration = {
        "context": {"age": {"default": 3}, "country": ("fr", "de")},
        "policy": {"kind": "epsilon-greedy", "epsilon": 0.2},
        "guard_rails": {"minimum": 0.1, "control": "A", "control_share": 0.2},
    }
    before = None
    for one in (rewards, again, rewards):
        with pytest.warns(ContextIgnoredWarning):
            opened(**declaration, rewards=one)
        before = before or audit_lines(store)
    assert audit_lines(store) == before


def test_what_may_change_is_declared_anew_and_stays(opened, store, clock):
    fed(opened(), clock).refit()
    opened(policy="ucb1", guard_rails={"minimum": 0.1}, refit_rows=7, seed=3)
    bandit = open_bandit(store, name="page", background=False, clock=clock)
    settings = bandit.settings
    assert (settings.policy, settings.guard_rails.minimum) == ("ucb1", 0.1)
    assert (settings.refit_rows, settings.seed) == (7, 3)
    # The policy takes over with what was learned.
    assert bandit.decide().version == 1
    newest = fitted(bandit)
    assert (newest.version, newest.policy, newest.rows) == (2, "ucb1", 30)


@pytest.mark.parametrize(
    ("wrong", "parameter"),
    [
        ({"default_reward": "x"}, None),
        ({"default_reward": 0.5}, "reward"),
        ({"reward_wait": 0, "combine": "max"}, "combine"),
        ({"no_reward_after": 60}, "no_reward_after"),
        ({"reward_wait": 10**400}, None),
        ({"reward_wait": 2e9}, "reward_wait"),
        ({"quarantine": 0}, "quarantine"),
        ({"combine": "sum"}, "combine"),
        ({"rewards": "text"}, None),
        ({"rewards": {"kind": "binary", "more": 1}}, None),
        ({"rewards": {"kind": "continuous", "low": 2, "high": 1}}, None),
        ({"refit_rows": 1.5}, "refit_rows"),
        ({"seed": np.int64(3)}, None),
        ({"keep_versions": 1}, "keep_versions"),
        ({"policy": "no-such"}, "policy"),
        ({"policy": {"kind": "epsilon-greedy", "epsilon": 3.0}}, None),
        ({"policy": {"kind": "nowhere.py:Policy"}}, None),
        ({"polici": "ucb1"}, None),
        ({"name": "../up"}, "name"),
        ({"sticky": "always"}, "sticky"),
        ({"actions": "ABC"}, "actions"),
    ],
    ids=repr,
)
def test_a_declaration_that_makes_no_sense_is_refused_and_nothing_is_written(
    opened, store, wrong, parameter
):
    with raises_code("invalid-input", parameter):
        opened(**wrong)
    with raises_code("invalid-input", "actions"):
        open_bandit(store, background=False)
    assert bandit_names(store) == []


def test_a_bandit_lives_in_a_file_of_its_name(tmp_path):
    with open_bandit(tmp_path / "Home Page.db", actions=ARMS, background=False) as bandit:
        assert bandit.name == "home-page"
        bandit.decide(id="one")
    with open_store(tmp_path / "Home Page.db", read_only=True) as store:
        assert bandit_names(store) == ["home-page"]


# Beside the decisions


@pytest.mark.parametrize(("refit_rows", "refit_seconds"), [(5, 1e6), (10**6, 0.1)])
def test_versions_are_fitted_beside_after_so_many_rows_or_some_time(refit_rows, refit_seconds):
    with open_bandit(
        ":memory:",
        actions=ARMS,
        policy={"kind": "thompson"},
        reward_wait=0.01,
        refit_rows=refit_rows,
        refit_seconds=refit_seconds,
    ) as bandit:
        bandit.decide_many([{}] * 4)
        if refit_rows == 5:
            wait_until(lambda: bandit.counts().get("matured") == 4)
            assert bandit.versions() == []
        bandit.decide()
        wait_until(lambda: bandit.decide().version >= 1)
        wait_until(lambda: read_progress(bandit.store, 1) is not None)
        assert not any(bandit.failures.values())


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
        wait_until(lambda: bandit.decide().version >= 1)


# Policies


def test_a_policy_object_must_be_given_again_unless_it_can_be_written(opened, store, clock):
    class Local(Thompson):
        """A policy whose class cannot be imported."""

    for policy in (Local(2.0, 5.0), Thompson(2.0, 5.0)):
        name = type(policy).__name__.lower()
        bandit = fed(opened(policy=policy, name=name), clock)
        assert bandit.refit().version == bandit.decide().version == 1
    with raises_code("invalid-input"):
        open_bandit(store, name="local", background=False)
    assert opened(policy=Local(2.0, 5.0), name="local").decide().version == 1
    again = open_bandit(store, name="thompson", background=False)
    assert again.decide().version == 1
    assert again.policy == Thompson(2.0, 5.0)


CONTEXT = {"age": float, "country": ["fr", "de"]}
DUEL = {"left": ["A", "B", "C"], "right": ["A", "B", "C"]}


def one_of_each_kind():
    """The first preset of every class of policies that trains no network."""
    found = {}
    for name, policy in sorted(presets().items()):
        if not policy.traits.trains_models:
            found.setdefault(type(policy), name)
    return list(found.values())


@pytest.mark.filterwarnings("ignore::submax.core.errors.FallbackWarning")
@pytest.mark.parametrize("policy", one_of_each_kind())
def test_every_policy_decides_and_learns_live(opened, clock, seed, policy):
    rng = np.random.default_rng(seed)
    facts = make_policy(policy).traits
    declaration = {
        "actions": DUEL if facts.needs_pairs else PAGE,
        "context": CONTEXT if facts.uses_context else None,
        "policy": policy,
    }
    bandit = opened(**declaration)

    def decide():
        age = float(rng.normal(40, 20))
        context = {"age": age, "country": "fr" if age > 40 else "de"}
        return bandit.decide(context if facts.uses_context else None)

    for version in (1, 2):
        for _ in range(10):
            decision = decide()
            assert 0 < decision.propensity <= 1
            bandit.reward(decision.id, float(rng.random() < 0.3))
        clock.now += WAIT + 1
        assert bandit.refit().version == version
        assert decide().version == version
    again = opened(**declaration)
    assert (again.version, again.failures.get(DAMAGED, 0)) == (2, 0)
