"""A unit keeps its action for a while, with true propensities."""

import math

import numpy as np
import pytest

import submax
from submax.bandit.assignment import UnitNumbers
from submax.testing import ManualClock

ARMS = ["A", "B", "C", "D"]
UNITS = [f"visitor-{number}" for number in range(400)]
RAILS = {"control": "B", "control_share": 0.2, "holdout": 0.3, "baseline": "A"}
DEVIATIONS = 4.5
"""Standard deviations of a tolerance: with some dozens of comparisons, 1 in 1000 runs fails."""
MANY_UNITS = [f"visitor-{number}" for number in range(5000)]


def opened(clock=None, **settings):
    given = {"actions": ARMS, "policy": "thompson-1-1", "reward_wait": 10, **settings}
    return submax.Bandit(clock=clock or ManualClock(), **given)


def tolerance(share, count):
    """How far a share of so many draws may be from the one that is expected."""
    return DEVIATIONS * math.sqrt(share * (1 - share) / count)


def actions(bandit, units=UNITS, **arguments):
    return [bandit.decide(unit=unit, **arguments).action for unit in units]


def learn(bandit, clock, best, context=None):
    """Make a version that prefers one action, from decisions without a unit."""
    for _ in range(120):
        decision = bandit.decide(context)
        bandit.reward(decision.id, float(decision.action == best))
    clock.now += 11
    assert bandit.refit().learned


def test_a_unit_keeps_its_action_while_a_version_lasts(clock, seed):
    bandit = opened(clock, seed=seed)
    first = actions(bandit)
    assert actions(bandit) == first
    assert len(set(first)) == len(ARMS)
    learn(bandit, clock, "C")
    second = actions(bandit)
    assert second != first
    assert actions(bandit) == second


def test_with_a_duration_a_unit_keeps_its_action_over_versions(clock, seed):
    bandit = opened(clock, sticky=3600, seed=seed)
    early, late = UNITS[:200], UNITS[200:]
    first = actions(bandit, early)
    clock.now += 1000
    learn(bandit, clock, "C")
    again = [bandit.decide(unit=unit) for unit in early]
    assert [one.action for one in again] == first
    # The version and the propensity are those of the draw that is repeated.
    assert {one.version for one in again} == {0}
    assert {one.propensity for one in again} == {0.25}
    # Units that are new are drawn by the new version, which has a preference.
    fresh = actions(bandit, late)
    assert fresh.count("C") > 150
    clock.now += 3600 - 1012
    assert actions(bandit, early) == first
    clock.now += 2
    assert actions(bandit, early) != first
    # Less than an hour after their first decision, the others keep theirs.
    assert actions(bandit, late) == fresh


def test_propensities_are_those_of_the_draws(clock, seed):
    bandit = opened(clock, sticky=3600, seed=seed, guard_rails={"minimum": 0.05})
    learn(bandit, clock, "C")
    for eligible in (None, ["A", "B", "C"], ["A", "B"]):
        decisions = [bandit.decide(unit=unit, eligible=eligible) for unit in UNITS]
        for name in eligible or ARMS:
            chances = {one.propensity for one in decisions if one.action == name}
            if not chances:
                continue
            (chance,) = chances
            share = sum(one.action == name for one in decisions) / len(decisions)
            assert abs(share - chance) <= tolerance(chance, len(decisions))


def test_only_units_whose_action_is_not_eligible_get_another_one(seed):
    for settings in ({}, {"sticky": 3600}):
        bandit = opened(seed=seed, **settings)
        first = actions(bandit)
        limited = actions(bandit, eligible=["A", "B"])
        assert set(limited) == {"A", "B"}
        assert all(
            now == before
            for now, before in zip(limited, first, strict=True)
            if before in ("A", "B")
        )
    # Other choices make another version, so only a duration keeps actions.
    bandit.pause("D")
    assert all(
        now == before for now, before in zip(actions(bandit), first, strict=True) if before != "D"
    )
    bandit.resume("D")
    assert actions(bandit) == first
    bandit.add("E")
    assert actions(bandit) == first
    assert actions(bandit, eligible=["E"]) == ["E"] * len(UNITS)


def test_holdout_and_control_are_drawn_for_each_unit(clock, seed):
    bandit = opened(clock, guard_rails=RAILS, sticky="none", seed=seed)
    assert actions(bandit) != actions(bandit)
    first = [bandit.decide(unit=unit) for unit in UNITS]
    learn(bandit, clock, "C")
    second = [bandit.decide(unit=unit) for unit in UNITS]
    for before, now in zip(first, second, strict=True):
        assert before.holdout == now.holdout
        if not now.holdout:
            assert (before.action == "B") == (now.action == "B")
            assert (now.action == "B") == math.isclose(now.propensity, 0.2) or now.action != "B"
    held_out = sum(one.holdout for one in first) / len(first)
    assert abs(held_out - 0.3) <= tolerance(0.3, len(first))
    rest = [one for one in first if not one.holdout]
    control = sum(one.action == "B" for one in rest) / len(rest)
    assert abs(control - 0.2) <= tolerance(0.2, len(rest))


def test_several_decisions_at_once_are_those_of_one_by_one(seed):
    settings = {"guard_rails": RAILS, "context": {"age": float}, "policy": "rcp-adaptive"}
    one_by_one, together = opened(seed=seed, **settings), opened(seed=seed, **settings)
    rng = np.random.default_rng(seed)
    requests = [
        {"context": {"age": float(rng.normal())}, "unit": unit, "id": f"{visit}-{unit}"}
        for visit in range(2)
        for unit in UNITS[:50]
    ]
    expected = [one_by_one.decide(**request) for request in requests]
    assert together.decide_many(requests) == expected
    # The second visit of a unit in the same call has the action of the first.
    assert [one.action for one in expected[50:]] == [one.action for one in expected[:50]]


@pytest.mark.parametrize("actions_", [{"price": (1.0, 5.0)}, {"a": ARMS, "b": ["x", "y"]}])
def test_all_kinds_of_actions_are_repeated(actions_, seed):
    policy = "rcp-adaptive" if "a" in actions_ else "grid-thompson-1-1"
    bandit = opened(actions=actions_, policy=policy, sticky=60, seed=seed)
    first = actions(bandit, UNITS[:20])
    assert actions(bandit, UNITS[:20]) == first
    assert len({str(one) for one in first}) > 1


def test_numbers_of_a_unit_never_change():
    # Stored nowhere, they must be the same in every process and version of submax.
    assert UnitNumbers("homepage", 7).uniform("holdout", "visitor-17") == 0.3087117173395267


def test_uniform_numbers_are_uniform_and_independent_of_each_other(seed):
    numbers = UnitNumbers("homepage", seed)
    first = np.array([numbers.uniform("holdout", unit) for unit in MANY_UNITS])
    second = np.array([numbers.uniform("control", unit) for unit in MANY_UNITS])
    other = np.array([UnitNumbers("cart", seed).uniform("holdout", unit) for unit in MANY_UNITS])
    for low in np.arange(0, 1, 0.1):
        share = ((first >= low) & (first < low + 0.1)).mean()
        assert abs(share - 0.1) < tolerance(0.1, len(first))
    for one in (second, other):
        assert abs(np.corrcoef(first, one)[0, 1]) < DEVIATIONS / math.sqrt(len(first))
