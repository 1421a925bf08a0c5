import time
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from refusals import raises_code
from scipy.stats import binomtest

import submax
from submax.evaluation import Log
from submax.live.log.export import Export
from submax.live.operating.audit_log import AuditLog
from submax.live.store.memory_store import MemoryStore
from submax.live.store.sqlite_store import SQLiteStore
from submax.policies.epsilon_greedy import Random

CHANCES = {"A": 0.1, "B": 0.2, "C": 0.7}


class Brittle(Random):
    """Uniform, until it is broken or slow."""

    traits = replace(Random().traits, uses_context=True)
    broken, seconds = False, 0.0

    def probabilities(self, state, context):
        if self.broken:
            raise RuntimeError("out of order")
        end = time.thread_time() + self.seconds
        while time.thread_time() < end:
            pass
        return super().probabilities(state, context)


BRITTLE = {"kind": f"{__name__}:Brittle"}


def opened(clock, store=None, **declared):
    usual = {"actions": list(CHANCES), "reward_wait": 60, "policy": {"kind": "random"}}
    return submax.open(
        store or MemoryStore(clock),
        name="page",
        clock=clock,
        background=False,
        rng=np.random.default_rng(7),
        **usual | declared,
    )


def live(bandit, clock, rounds=3, visits=50, context=None):
    rng = np.random.default_rng(bandit.counts().get("decisions", 0))
    for _ in range(rounds):
        for _ in range(visits):
            shown = bandit.decide(context)
            bandit.reward(shown.id, float(rng.random() < CHANCES[shown.action]))
        clock.now += 61
        bandit.refit()
    return bandit.shadow()


def test_a_better_shadow_is_found_to_be_better(clock):
    bandit = opened(clock, shadow="thompson-1-1")
    report = live(bandit, clock, rounds=12)
    assert (report.state, report.verdict, report.exact) == ("running", "better", True)
    # Uniform earns 1/3; the shadow earns up to 0.7.
    assert 0.15 < report.estimate < 0.45
    assert report.low < report.estimate < report.high
    assert report.judged == report.compared == 11 * 50


def test_a_shadow_like_the_policy_is_not_found_to_be_better(clock):
    bandit = opened(clock, policy="thompson-1-9", shadow="thompson-1-9", seed=3)
    report = live(bandit, clock, rounds=6)
    assert report.verdict != "better"
    assert report.low < 0 < report.high


def test_decisions_are_those_of_a_bandit_without_a_shadow(clock):
    shown = []
    for shadow in (None, "thompson-1-1"):
        bandit = opened(clock, shadow=shadow, policy="rcp-submax")
        live(bandit, clock)
        shown.append([(one.action, one.propensity) for one in (bandit.decide() for _ in range(50))])
    assert shown[0] == shown[1]


def test_an_export_has_what_the_shadow_would_have_done(clock, tmp_path):
    bandit = opened(clock)
    live(bandit, clock, rounds=1, visits=10)
    bandit.set_shadow("rcp-submax")
    live(bandit, clock, rounds=2, visits=20)
    Export(bandit.store, "page").write(tmp_path / "log.parquet")
    rows = pq.read_table(tmp_path / "log.parquet").to_pylist()
    judged = [row for row in rows if row["shadow_version"] is not None]
    assert len(judged) == bandit.shadow().judged > 0
    assert {row["shadow_action"] for row in judged} <= set(CHANCES)
    assert len(Log.read(tmp_path / "log.parquet")) == 50


def test_a_shadow_judges_with_the_probabilities_that_it_decides_with(clock, tmp_path, seed):
    bandit = opened(clock, shadow="thompson-1-9", guard_rails={"minimum": 0.05}, seed=seed)
    live(bandit, clock, rounds=2, visits=40)
    for _ in range(600):
        bandit.decide()
    bandit.refit()
    Export(bandit.store, "page").write(tmp_path / "log.parquet")
    rows = pq.read_table(tmp_path / "log.parquet").to_pylist()[-600:]
    bandit.promote_shadow()
    chances = {one.choice: one.probability for one in bandit.arms()}
    expected = [chances[row["action"]] for row in rows]
    assert [row["shadow_probability"] for row in rows] == pytest.approx(expected)
    for name, chance in chances.items():
        count = sum(row["shadow_action"] == name for row in rows)
        assert binomtest(count, 600, chance).pvalue > 1e-6


def test_holdout_decisions_are_not_compared_and_units_count_once(clock):
    bandit = opened(clock, shadow="rcp-submax", guard_rails={"holdout": 0.5, "baseline": "A"})
    bandit.refit()
    for visit in range(200):
        bandit.reward(bandit.decide(unit=f"visitor-{visit % 20}").id, 1.0)
    clock.now += 61
    bandit.refit()
    assert 0 < bandit.shadow().judged < 200
    assert bandit.shadow().compared <= 20


def test_a_restart_continues_and_compares_the_same(clock, tmp_path):
    path = tmp_path / "page.db"
    with opened(clock, SQLiteStore(path, clock=clock), shadow="rcp-submax") as bandit:
        before = live(bandit, clock, rounds=2, visits=20)
    with opened(clock, SQLiteStore(path, clock=clock)) as bandit:
        assert bandit.settings.shadow == "rcp-submax"
        assert bandit.shadow() == before
        after = live(bandit, clock, rounds=1, visits=20)
    assert after.judged == before.judged + 20
    assert after.version > before.version


def test_promotion_and_roll_back_are_one_call_each_and_are_audited(clock):
    bandit = opened(clock, policy="rcp-submax")
    with raises_code("conflict"):
        bandit.promote_shadow()
    bandit.set_shadow("thompson-1-1")
    with raises_code("invalid-input"):
        bandit.promote_shadow()
    with raises_code("invalid-input"):
        bandit.set_shadow("rcp-submx")
    assert bandit.settings.shadow == "thompson-1-1"
    live(bandit, clock)
    deciding, arms = bandit.version, bandit.arms()
    number = bandit.promote_shadow()
    assert bandit.version == bandit.decide().version == number
    assert (bandit.settings.policy, bandit.settings.shadow) == ("thompson-1-1", "rcp-submax")
    assert live(bandit, clock, rounds=1).policy == "rcp-submax"
    assert bandit.version > number
    assert bandit.roll_back_shadow() == deciding
    assert (bandit.settings.policy, bandit.settings.shadow) == ("rcp-submax", "thompson-1-1")
    assert [one.probability for one in bandit.arms()] == [one.probability for one in arms]
    audited = [entry.operation for _, entry in AuditLog(bandit.store).newest(10)]
    assert audited[:2] == ["roll-back-shadow", "promote-shadow"]
    with raises_code("conflict"):
        bandit.roll_back_shadow()


@pytest.mark.parametrize("trouble", [{"broken": True}, {"seconds": 0.1}], ids=str)
def test_a_shadow_that_fails_or_is_slow_is_switched_off_and_decisions_go_on(
    clock, monkeypatch, trouble
):
    context = {"x": 1.0}
    bandit = opened(clock, shadow=BRITTLE, context={"x": float}, policy="linucb")
    live(bandit, clock, context=context)
    for name, value in trouble.items():
        monkeypatch.setattr(Brittle, name, value)
    for _ in range(6):
        assert bandit.decide(context).action in CHANCES
        bandit.refit()
    assert (bandit.shadow().state, bandit.shadow().failures) == ("stopped", 5)
    monkeypatch.undo()
    bandit.set_shadow(BRITTLE)
    assert live(bandit, clock, context=context).state == "running"
