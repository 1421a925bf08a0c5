import time
from dataclasses import dataclass

import numpy as np
import pyarrow.parquet as pq
import pytest
from refusals import raises_code
from scipy.stats import binomtest

import submax
from submax.evaluation import Log
from submax.live.bandits.bandit import Bandit
from submax.live.bandits.open import open_bandit
from submax.live.log.bandits import shadow_stream
from submax.live.log.export import Export
from submax.live.log.records import DECISION, DecisionMade, body_of
from submax.live.monitoring.shadow import shadow_runner
from submax.live.monitoring.shadow.shadow_comparison import stored_report
from submax.live.monitoring.shadow.shadow_limits import ShadowLimits
from submax.live.monitoring.shadow.shadow_records import OPINIONS, Opinions
from submax.live.monitoring.shadow.shadow_worker import ShadowWorker
from submax.live.operating.audit_log import AuditLog
from submax.live.store.memory_store import MemoryStore
from submax.live.store.sqlite_store import SQLiteStore
from submax.policies.classic.random import Random
from submax.testing import ManualClock

CHANCES = {"A": 0.1, "B": 0.2, "C": 0.7}
BROKEN = {"value": False}


@dataclass(frozen=True)
class Brittle(Random):
    """Uniform, until it is broken; then it fails, or is slow."""

    seconds: float = 0.0

    def probabilities(self, state, context):
        if BROKEN["value"] and not self.seconds:
            raise RuntimeError("out of order")
        if BROKEN["value"]:
            end = time.thread_time() + self.seconds
            while time.thread_time() < end:
                pass
        return super().probabilities(state, context)


BRITTLE = {"kind": f"{__name__}:Brittle"}


@pytest.fixture(autouse=True)
def whole():
    BROKEN["value"] = False
    yield
    BROKEN["value"] = False


def opened(clock, store=None, **declared):
    usual = {"actions": list(CHANCES), "reward_wait": 60, "policy": {"kind": "random"}}
    return open_bandit(
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


def opinions(store):
    return [
        body_of(one, Opinions) for one in store.read(shadow_stream("page")) if one.kind == OPINIONS
    ]


def test_a_better_shadow_is_found_to_be_better():
    clock = ManualClock()
    bandit = opened(clock, shadow="thompson-1-1")
    report = live(bandit, clock, rounds=12)
    assert (report.state, report.verdict, report.exact) == ("running", "better", True)
    # Uniform earns 1/3; the shadow earns up to 0.7.
    assert 0.15 < report.estimate < 0.45
    assert report.low < report.estimate < report.high
    assert report.judged == report.compared == 11 * 50
    assert stored_report(bandit.store, "page") == report


def test_decisions_are_those_of_a_bandit_without_a_shadow():
    shown = []
    for shadow in (None, "thompson-1-1"):
        clock = ManualClock()
        bandit = opened(clock, shadow=shadow, policy="rcp-submax")
        live(bandit, clock)
        shown.append([(one.action, one.propensity) for one in (bandit.decide() for _ in range(50))])
    assert shown[0] == shown[1]


def test_a_version_judges_only_decisions_that_came_after_what_it_learned_from():
    clock = ManualClock()
    bandit = opened(clock, shadow="rcp-submax")
    live(bandit, clock, rounds=4)
    versions = {one.version: one for one in bandit._shadow._log.versions.values()}
    for found in opinions(bandit.store):
        if found.version:
            assert versions[found.version].read < min(found.positions)
        later = [one.read for one in versions.values() if one.version > found.version]
        assert all(max(found.positions) <= read for read in later)


def test_the_probability_of_the_action_is_that_of_a_bandit_with_this_policy():
    clock = ManualClock()
    bandit = opened(clock, shadow="rcp-submax", guard_rails={"minimum": 0.05})
    live(bandit, clock, rounds=3)
    clock.now += 1
    shown = [bandit.decide() for _ in range(20)]
    bandit._shadow.step()
    bandit.promote_shadow()
    # The promoted version is the one that judged.
    chances = dict(zip(CHANCES, bandit._live_state.serving.shares, strict=True))
    last = opinions(bandit.store)[-1]
    made = [
        body_of(one, DecisionMade) for one in bandit.store.read("page/log") if one.kind == DECISION
    ][-20:]
    assert last.chances == [pytest.approx(chances[one.action]) for one in shown]
    assert last.propensities == [one.propensity for one in made]


def test_its_own_choices_have_its_probabilities(seed):
    clock = ManualClock()
    bandit = opened(clock, shadow="thompson-1-9", seed=seed)
    live(bandit, clock, rounds=2, visits=40)
    for _ in range(600):
        bandit.decide()
    bandit._shadow.step()
    last = opinions(bandit.store)[-1]
    judge = bandit._shadow._judge
    (chance,) = judge._serving.probabilities_of_many([[]], ((0, 1, 2),))
    counts = np.bincount([one[0] for one in last.choices], minlength=3)
    for count, probability in zip(counts.tolist(), chance, strict=True):
        assert binomtest(count, 600, min(float(probability), 1.0)).pvalue > 1e-6


def test_an_export_has_what_the_shadow_would_have_done(tmp_path):
    clock = ManualClock()
    bandit = opened(clock)
    live(bandit, clock, rounds=1, visits=10)
    bandit.set_shadow("rcp-submax")
    live(bandit, clock, rounds=2, visits=20)
    export = Export(bandit.store, "page")
    export.write(tmp_path / "log.parquet")
    export.write(tmp_path / "again.parquet")
    rows = pq.read_table(tmp_path / "log.parquet").to_pylist()
    assert (tmp_path / "log.parquet").read_bytes() == (tmp_path / "again.parquet").read_bytes()
    judged = [row for row in rows if row["shadow_version"] is not None]
    assert len(judged) == bandit.shadow().judged
    assert {row["shadow_action"] for row in judged} <= set(CHANCES)
    found = [chance for one in opinions(bandit.store) for chance in one.chances]
    assert [row["shadow_probability"] for row in judged] == found
    assert len(Log.read(tmp_path / "log.parquet")) == 50


def test_a_restart_continues_and_compares_the_same(tmp_path):
    clock, path = ManualClock(), tmp_path / "page.db"
    with opened(clock, SQLiteStore(path, clock=clock), shadow="rcp-submax") as bandit:
        before = live(bandit, clock, rounds=2, visits=20)
    with opened(clock, SQLiteStore(path, clock=clock)) as bandit:
        assert bandit.settings.shadow == "rcp-submax"
        assert bandit.shadow() == before
        after = live(bandit, clock, rounds=1, visits=20)
    assert after.judged == before.judged + 20
    assert after.version > before.version


def test_promotion_and_roll_back_are_one_call_each_and_are_audited():
    clock = ManualClock()
    bandit = opened(clock, policy="rcp-submax", shadow="thompson-1-1")
    live(bandit, clock)
    deciding, shares = bandit.version, bandit._live_state.serving.shares
    number = bandit.promote_shadow()
    assert (bandit.version, bandit.settings.policy, bandit.settings.shadow) == (
        number,
        "thompson-1-1",
        "rcp-submax",
    )
    assert bandit.decide().version == number
    assert live(bandit, clock, rounds=1).policy == "rcp-submax"
    assert bandit.version > number
    assert bandit.roll_back_shadow() == deciding
    assert (bandit.settings.policy, bandit.settings.shadow) == ("rcp-submax", "thompson-1-1")
    assert bandit._live_state.serving.shares == shares
    audited = [entry.operation for _, entry in AuditLog(bandit.store).newest(10)]
    assert audited == ["roll-back-shadow", "promote-shadow"]
    with raises_code("conflict"):
        bandit.roll_back_shadow()


def test_what_cannot_be_promoted_is_refused_and_nothing_changes():
    clock = ManualClock()
    bandit = opened(clock)
    with raises_code("conflict"):
        bandit.promote_shadow()
    bandit.set_shadow("rcp-submax")
    with raises_code("invalid-input"):
        bandit.promote_shadow()
    assert bandit.settings.policy == {"kind": "random"}


@pytest.mark.parametrize(
    ("policy", "match"),
    [
        ("rcp-submx", "rcp-submax"),
        ({"kind": "thompson", "gamma": 1}, "gamma"),
        (7, "name"),
    ],
)
def test_a_wrong_shadow_is_refused_and_the_old_one_stays(policy, match):
    bandit = opened(ManualClock(), shadow="rcp-submax")
    before = bandit.store.appended("page/settings")
    with raises_code("invalid-input"):
        bandit.set_shadow(policy)
    assert bandit.settings.shadow == "rcp-submax"
    assert bandit.store.appended("page/settings") == before


def test_a_bandit_in_memory_has_none():
    with raises_code("invalid-input"):
        submax.Bandit(["A", "B"], shadow="rcp-submax")
    with raises_code("invalid-input"):
        submax.Bandit(["A", "B"]).shadow()


def test_a_shadow_that_fails_is_counted_and_switched_off_and_decisions_go_on():
    clock = ManualClock()
    bandit = opened(clock, shadow=BRITTLE)
    live(bandit, clock)
    BROKEN["value"] = True
    for failures in range(1, 7):
        assert bandit.decide().action in CHANCES
        bandit.refit()
        report = bandit.shadow()
        assert report.failures == min(failures, 5)
    assert report.state == "stopped"
    assert "failed 5 times in a row" in report.reason
    assert bandit.failures["failures of the shadow"] == 5
    BROKEN["value"] = False
    bandit.set_shadow(BRITTLE)
    assert live(bandit, clock).state == "running"


def test_a_shadow_that_is_slow_is_switched_off():
    clock = ManualClock()
    bandit = opened(clock, shadow={**BRITTLE, "seconds": 0.02})
    limits = ShadowLimits(failures=2, decision_seconds=0.001)
    bandit._shadow = ShadowWorker(bandit.store, "page", bandit._live_state, bandit._learner, limits)
    bandit.decide()
    bandit.refit()
    BROKEN["value"] = True
    for _ in range(3):
        bandit.decide()
        bandit._shadow._judge = None
        bandit.refit()
    assert bandit.shadow().state == "stopped"
    assert "seconds for a decision" in bandit.shadow().reason


def test_a_shadow_that_does_not_return_is_switched_off_by_another_thread():
    clock = ManualClock()
    bandit = opened(clock, shadow="rcp-submax")
    limits = ShadowLimits(call_seconds=0.0)
    worker = ShadowWorker(bandit.store, "page", bandit._live_state, bandit._learner, limits)
    worker.step()
    worker._busy_since = time.monotonic() - 1.0
    worker.supervise()
    assert worker.report().state == "stopped"
    assert "did not answer" in worker.report().reason


def test_in_the_background_a_thread_judges_while_there_is_a_shadow(monkeypatch):
    monkeypatch.setattr(shadow_runner, "SHADOW_SECONDS", 0.01)
    bandit = open_bandit(
        MemoryStore(), name="page", actions=["A", "B"], shadow="rcp-submax", reward_wait=0
    )
    with bandit:
        deadline = time.monotonic() + 30
        while bandit.shadow().judged == 0 and time.monotonic() < deadline:
            bandit.reward(bandit.decide().id, 1.0)
            time.sleep(0.02)
        assert bandit.shadow().judged > 0
        bandit.set_shadow(None)
        assert bandit.shadow().state == "none"


def test_holdout_decisions_are_not_compared_and_units_count_once():
    clock = ManualClock()
    bandit = opened(clock, shadow="rcp-submax", guard_rails={"holdout": 0.5, "baseline": "A"})
    bandit.refit()
    for visit in range(200):
        bandit.reward(bandit.decide(unit=f"visitor-{visit % 20}").id, 1.0)
    clock.now += 61
    bandit.refit()
    report = bandit.shadow()
    assert 0 < report.judged < 200
    assert report.compared <= 20


def test_unlisted_actions_are_judged_by_the_density(seed):
    clock = ManualClock()
    bandit = open_bandit(
        MemoryStore(clock), name="page", clock=clock, background=False, reward_wait=60,
        actions={"price": (1.0, 9.0)}, policy="grid-epsilon-greedy-0.1", shadow="grid-thompson-1-1",
        rng=np.random.default_rng(seed),
    )  # fmt: skip
    bandit.refit()
    for _ in range(30):
        bandit.reward(bandit.decide().id, 1.0)
    clock.now += 61
    bandit.refit()
    assert bandit.shadow().compared == 30
    assert all(chance > 0 for one in opinions(bandit.store) for chance in one.chances)


def test_a_deleted_bandit_leaves_nothing_of_its_shadow(monkeypatch):
    monkeypatch.setattr("submax.live.declaring.delete.NOTICE_SECONDS", 0.0)
    clock = ManualClock()
    store = MemoryStore(clock)
    bandit = opened(clock, store, shadow="rcp-submax")
    live(bandit, clock)
    monkeypatch.setattr(store, "close", lambda: None)
    bandit.delete()
    assert store.read(shadow_stream("page")) == []
    assert isinstance(bandit, Bandit)
