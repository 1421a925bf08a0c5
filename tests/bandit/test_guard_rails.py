import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from refusals import raises_code
from stored import probabilities

import submax
from submax.bandit.declaring import bandit_names
from submax.bandit.tables import DECISION_COLUMNS, decision_row
from submax.testing.assertions import SMALLEST_P_VALUE, goodness_of_fit

FILE = str(Path(__file__).parents[1] / "support" / "weighted.py")
ARMS = ["A", "B", "C", "D"]
SURE = (1.0, 0.0, 0.0, 0.0)
"""A policy that takes the first arm alone."""
PAGE = {"title": ["A", "B"], "layout": ["wide", "narrow"]}
DRAWS = 5000
SIGMAS = 7.0


@pytest.fixture
def guarded(opened):
    """A bandit of weighted arms with guard rails."""

    def guarded(rails, weights=SURE, actions=ARMS, **others):
        policy = {"kind": f"{FILE}:Weighted", "weights": list(weights)}
        return opened(actions=actions, policy=policy, guard_rails=rails, **others)

    return guarded


def records(bandit):
    rows = bandit.store.select(f"select {DECISION_COLUMNS} from decision order by n")
    return [decision_row(row) for row in rows]


def test_the_minimum_is_kept_for_all_that_are_eligible_and_limits_how_many_are_added(guarded):
    bandit = guarded({"minimum": 0.25})
    assert probabilities(bandit) == pytest.approx(dict.fromkeys(ARMS, 0.25))
    assert probabilities(bandit, eligible=["A", "B"]) == pytest.approx({"A": 0.75, "B": 0.25})
    assert probabilities(bandit, eligible=["B"]) == {"B": 1.0}
    with raises_code("guard-rail", "minimum"):
        bandit.add("E")


@pytest.mark.parametrize("weights", [SURE, (0.0, 1.0, 1.0, 1.0), (5.0, 1.0, 1.0, 3.0)])
@pytest.mark.parametrize("minimum", [0.0, 0.05])
@pytest.mark.parametrize("control", [{}, {"control": "B", "control_share": 0.2}])
def test_the_control_has_its_share_every_action_the_minimum_and_the_policy_divides_the_rest(
    guarded, weights, minimum, control
):
    found = probabilities(guarded({"minimum": minimum, **control}, weights))
    others = dict(zip(ARMS, weights, strict=True))
    if control:
        assert found["B"] == pytest.approx(0.2, rel=1e-5)
        del others["B"]
    left = 1 - control.get("control_share", 0.0) - len(others) * minimum
    for name, weight in others.items():
        expected = minimum + left * weight / sum(others.values())
        assert found[name] == pytest.approx(expected, rel=1e-5)


def test_a_control_or_baseline_that_is_not_eligible_is_not_shown(guarded):
    bandit = guarded({"control": "B", "control_share": 0.2})
    assert probabilities(bandit, eligible=["A", "C"]) == {"A": 1.0, "C": 0.0}
    assert probabilities(bandit, eligible=["B"]) == {"B": 1.0}
    bandit.pause("B")
    assert "B" not in probabilities(bandit)
    held_out = guarded({"holdout": 0.5, "baseline": "A"}, (1.0, 1.0, 1.0, 1.0), name="other")
    shown = held_out.decide_many([{"eligible": ["B", "C"]}] * 100)
    assert {one.action for one in shown} == {"B", "C"}
    held_out.pause("A")
    assert "A" not in {one.action for one in held_out.decide_many([{}] * 100)}


@pytest.mark.parametrize(
    ("rails", "expected"),
    [
        # Where the policy takes the control alone, the others share the rest.
        ({"control": "A", "control_share": 0.1}, (0.1, 0.3, 0.3, 0.3)),
        ({"burn_in": 5, "control": "B", "control_share": 0.4}, (0.2, 0.4, 0.2, 0.2)),
    ],
)
def test_the_share_of_the_control_is_kept(guarded, rails, expected):
    assert probabilities(guarded(rails)) == pytest.approx(dict(zip(ARMS, expected, strict=True)))


def test_the_control_of_slots_is_a_joint_action(guarded):
    rails = {"control": {"title": "B", "layout": "wide"}, "control_share": 0.4}
    bandit = guarded(rails, (1.0, 1.0, 1.0, 1.0), PAGE)
    names = itertools.product(*PAGE.values())
    expected = {name: 0.4 if name == ("B", "wide") else 0.2 for name in names}
    assert probabilities(bandit) == pytest.approx(expected)
    found = probabilities(bandit, eligible={"layout": ["wide"]})
    assert found == pytest.approx({("A", "wide"): 0.6, ("B", "wide"): 0.4})


def test_so_many_decisions_are_uniform_and_then_none_also_after_opening_again(guarded):
    found = []
    for decisions in (4, 6):
        bandit = guarded({"burn_in": 7})
        found += [probabilities(bandit) for _ in range(decisions)]
    assert found == [dict.fromkeys(ARMS, 0.25)] * 7 + [dict(zip(ARMS, SURE, strict=True))] * 3


def test_burn_in_and_holdout_work_for_eligible_arms_and_for_prices(guarded, opened):
    assert probabilities(guarded({"burn_in": 5}), eligible=["B", "C"]) == {"B": 0.5, "C": 0.5}
    priced = opened(
        name="priced",
        actions={"price": (0.0, 4.0)},
        policy="grid-thompson-1-1",
        guard_rails={"burn_in": 100, "holdout": 0.5, "baseline": {"price": 1.5}},
    )
    shown = priced.decide_many([{}] * 100)
    held = {(one.action["price"], one.propensity) for one in shown if one.holdout}
    assert held == {(1.5, 1.0)}
    assert {one.propensity for one in shown if not one.holdout} == {0.25}


def test_the_holdout_is_a_share_that_has_the_baseline_for_certain(guarded):
    bandit = guarded({"holdout": 0.2, "baseline": "C"}, (1.0, 1.0, 1.0, 1.0))
    for _ in range(DRAWS // 1000):
        bandit.decide_many([{}] * 1000)
    held = np.array([record.assignment == "holdout" for record in records(bandit)])
    error = math.sqrt(0.2 * 0.8 / DRAWS)
    assert abs(held.mean() - 0.2) < SIGMAS * error
    kept = [record for record in records(bandit) if record.assignment == "holdout"]
    assert {(record.action, record.propensity) for record in kept} == {("C", 1.0)}
    names = [one.action for one in records(bandit) if one.assignment != "holdout"]
    others = np.array(["ABCD".index(name) for name in names])
    assert goodness_of_fit(others, np.full(4, 0.25)) > SMALLEST_P_VALUE


MANY = {slot: [str(number) for number in range(10)] for slot in "abcde"}


@pytest.mark.parametrize(
    ("rails", "code", "parameter"),
    [
        ({"minimum": -0.1}, "guard-rail", "minimum"),
        ({"minimum": math.nan}, "guard-rail", "minimum"),
        ({"minimum": 0.3}, "guard-rail", "minimum"),
        ({"minimum": "0.1"}, "invalid-input", None),
        ({"control": "A"}, "guard-rail", "control_share"),
        ({"control_share": 0.1}, "guard-rail", "control_share"),
        ({"control": "Z", "control_share": 0.1}, "guard-rail", "choice"),
        ({"control": "A", "control_share": 0.1, "minimum": 0.2}, "guard-rail", "control_share"),
        ({"control": {"title": "A"}, "control_share": 0.1}, "guard-rail", "choice"),
        ({"burn_in": -1}, "guard-rail", "burn_in"),
        ({"burn_in": 1.5}, "invalid-input", None),
        ({"holdout": 0.1}, "guard-rail", "holdout"),
        ({"holdout": math.inf, "baseline": "A"}, "guard-rail", "holdout"),
        ({"aa_test": True}, "guard-rail", "aa_test"),
        ({"minimal": 0.1}, "invalid-input", None),
        ("minimum", "invalid-input", None),
    ],
    ids=repr,
)
def test_rails_that_make_no_sense_are_refused_and_nothing_is_written(
    guarded, store, rails, code, parameter
):
    with raises_code(code, parameter):
        guarded(rails)
    assert bandit_names(store) == []


@pytest.mark.parametrize("actions", [{"price": (0.0, 4.0)}, MANY], ids=["price", "many"])
def test_a_minimum_needs_actions_that_can_be_listed(actions):
    with raises_code("guard-rail", "minimum"):
        submax.Bandit(actions, policy="random", guard_rails={"minimum": 0.1})
    submax.Bandit(actions, policy="random", guard_rails={"burn_in": 10})
