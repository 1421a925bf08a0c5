"""Units keep their actions and groups over restarts, and in several processes on PostgreSQL."""

import json
import subprocess
import sys

import submax

UNITS = [f"visitor-{number}" for number in range(30)]
RAILS = {"holdout": 0.3, "baseline": "A", "control": "B", "control_share": 0.3}
DECIDE = """
import json, sys
import submax
with submax.open(sys.argv[1], name="shop", background=False) as bandit:
    context = {"age": float(sys.argv[2])}
    units = json.loads(sys.argv[3])
    found = [bandit.decide(context, unit=unit) for unit in units]
    print(json.dumps([[one.action, one.holdout, one.propensity] for one in found]))
"""
DECLARATION = {
    "actions": ["A", "B", "C", "D"],
    "context": {"age": float},
    "reward_wait": 0.001,
    "guard_rails": RAILS,
}


def started(place, age):
    """Decisions for all units, by a process of its own."""
    command = [sys.executable, "-c", DECIDE, str(place), str(age), json.dumps(UNITS)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def answers(process):
    said, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    return json.loads(said)


def kept(decision):
    return [decision.action, decision.holdout, decision.propensity]


def learn(bandit):
    """Fit a version; rewards that come too late do not matter here."""
    for number in range(60):
        decision = bandit.decide({"age": number})
        bandit.reward(decision.id, float(decision.action == "D"))
    assert bandit.refit().learned


def test_units_keep_their_actions_and_groups_after_a_restart(tmp_path):
    place = tmp_path / "shop.db"
    with submax.open(place, background=False, sticky=3600, **DECLARATION) as bandit:
        first = [bandit.decide({"age": 20}, unit=unit) for unit in UNITS]
        learn(bandit)
    with submax.open(place, background=False) as bandit:
        again = [bandit.decide({"age": 50}, unit=unit) for unit in UNITS]
    assert [kept(one) for one in again] == [kept(one) for one in first]
    assert {one.holdout for one in first} == {True, False}
    # Without stickiness the groups stay.
    with submax.open(place, background=False, sticky="none") as bandit:
        later = [bandit.decide({"age": 50}, unit=unit) for unit in UNITS]
    assert [one.holdout for one in later] == [one.holdout for one in first]
    for now, before in zip(later, first, strict=True):
        assert now.holdout or (now.action == "B") == (before.action == "B")


def test_two_processes_on_postgresql_agree_about_units(postgres_address):
    declaration = {**DECLARATION, "reward_wait": 30.0}
    with submax.open(
        postgres_address, name="shop", background=False, sticky=3600, **declaration
    ) as bandit:
        # At the same time, and in different contexts.
        processes = [started(postgres_address, age) for age in (20, 70)]
        first, second = (answers(process) for process in processes)
        assert first == second
        groups = [held_out for _, held_out, _ in first]
        assert set(groups) == {True, False}
        # A bandit that is opened later reads the pins from the database.
        with submax.open(postgres_address, name="shop", background=False) as later:
            again = [later.decide({"age": 45}, unit=unit) for unit in UNITS]
        assert [kept(one) for one in again] == first
        # Groups do not change with other settings.
        bandit.set(sticky="version", guard_rails={"minimum": 0.01})
        third = [bandit.decide({"age": 20}, unit=unit) for unit in UNITS]
        assert [one.holdout for one in third] == groups
        control = [not held_out and action == "B" for action, held_out, _ in first]
        assert [not one.holdout and one.action == "B" for one in third] == control
        assert bandit.counts()["decisions"] == 4 * len(UNITS)
