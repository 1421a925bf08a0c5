import math
from functools import partial

import numpy as np
import pyarrow.parquet as pq
import pytest
from refusals import raises_code

import submax
from submax.bandit.lift import LiftTally

HOLDOUT = {"holdout": 0.3, "baseline": "A"}
CONTROL = {"control": "A", "control_share": 0.25}
CHANCES = {"A": 0.2, "B": 0.6}


@pytest.fixture
def opened(opened):
    return partial(opened, actions=["A", "B"])


def run(bandit, clock, rng, decisions=600, units=None):
    for number in range(decisions):
        unit = None if units is None else f"visitor-{number % units}"
        decision = bandit.decide(unit=unit)
        bandit.reward(decision.id, float(rng.random() < CHANCES[decision.action]))
        clock.now += 1
        if number % 200 == 199:
            bandit.refit()
    clock.now += 11


@pytest.mark.parametrize("units", [None, 300])
def test_the_store_keeps_the_tally_of_the_log(opened, units, seed, tmp_path, clock):
    bandit = opened(guard_rails={**HOLDOUT, **CONTROL}, seed=seed)
    run(bandit, clock, np.random.default_rng(seed), decisions=599, units=units)
    late = bandit.decide(unit=units and "visitor-1")
    clock.now += 11
    holdout, control = bandit.lift()
    assert bandit.reward(late.id, 1.0).status == "late"
    assert opened().lift() == [holdout, control]
    bandit.export(tmp_path / "log.parquet")
    log = pq.read_table(tmp_path / "log.parquet").to_pydict()
    reward, group = np.array(log["reward"]), np.array(log["group"])
    assert set(group) == {"bandit", "holdout", "control"}
    expected = LiftTally(0.3).add(reward, group == "holdout", log["unit"])
    assert holdout.estimate == pytest.approx(expected.means[0] - expected.means[1])
    assert (holdout.low, holdout.high) == expected.lift((0.0, 1.0))[1:3]
    rest = group != "holdout"
    of_control = LiftTally(0.25).add(
        reward[rest], group[rest] == "control", np.array(log["unit"])[rest].tolist()
    )
    assert control.estimate == pytest.approx(of_control.means[0] - of_control.means[1])
    assert control.mean_of_group == pytest.approx(reward[group == "control"].mean())
    assert holdout.exact == (units is None)
    assert holdout.decisions + holdout.decisions_of_group == 600
    assert not holdout.alarm


def test_a_comparison_begins_anew_when_its_groups_change(opened, seed, clock):
    bandit = opened(guard_rails=HOLDOUT, seed=seed)
    run(bandit, clock, np.random.default_rng(seed), decisions=50)
    assert bandit.lift()[0].decisions > 0
    changed = opened(guard_rails={**HOLDOUT, "holdout": 0.5})
    report = changed.lift()[0]
    assert (report.decisions, report.decisions_of_group) == (0, 0)
    run(changed, clock, np.random.default_rng(seed), decisions=20)
    report = changed.lift()[0]
    assert report.decisions + report.decisions_of_group == 20
    assert report.sample_ratio.expected == 0.5
    # Other settings do not change the groups.
    same = opened(refit_rows=7)
    assert same.lift() == changed.lift()


def test_in_an_a_a_test_both_groups_are_decided_alike(opened, seed, clock):
    rails = {**HOLDOUT, "aa_test": True}
    bandit = opened(guard_rails=rails, seed=seed)
    shown = [bandit.decide() for _ in range(200)]
    held_out = [one for one in shown if one.holdout]
    # Drawn by the policy, which prefers neither action: all of them the baseline has a chance of
    # 2⁻³⁰ and less.
    assert len(held_out) > 30
    assert {one.action for one in held_out} == {"A", "B"}
    assert {one.propensity for one in held_out} == {0.5}
    # Rewards that only the holdout gets, as if its pages were counted twice.
    for one in shown:
        bandit.reward(one.id, float(one.holdout))
    clock.now += 11
    (report,) = bandit.lift()
    assert report.aa_test
    assert report.alarm
    assert report.cautions


def test_few_units_without_bounds_have_no_interval(opened, clock, seed):
    unbounded = {"rewards": "continuous", "policy": "rcp-adaptive", "default_reward": None}
    bandit = opened(guard_rails=HOLDOUT, seed=seed, **unbounded)
    bandit.reward(bandit.decide(unit="visitor-1").id, 12.5)
    clock.now += 11
    (report,) = bandit.lift()
    assert (report.low, report.high, report.exact) == (None, None, False)
    assert report.cautions
    memory = submax.Bandit(["A", "B"], guard_rails=HOLDOUT)
    assert memory.lift()[0].cautions
    assert memory.lift()[0].sample_ratio is None
    # Without groups there is nothing to compare with.
    with raises_code("invalid-input"):
        submax.Bandit(["A", "B"]).lift()


def test_a_lost_part_of_a_group_is_an_alarm(opened, seed, clock):
    bandit = opened(guard_rails=HOLDOUT, seed=seed)
    for _ in range(400):
        decision = bandit.decide(activate=False)
        # Pages of the holdout fail to load.
        if not decision.holdout:
            bandit.activate(decision.id)
    clock.now += 11
    (report,) = bandit.lift()
    assert report.sample_ratio.alarm
    assert report.sample_ratio.observed == 0.0
    assert math.isclose(report.sample_ratio.expected, 0.3)
    assert report.alarm
