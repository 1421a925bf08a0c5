"""Statements about contexts, joint actions and ablations turn with the numbers of a sweep.

Statements are known by their place, since their sentences may be worded anew.
"""

import numpy as np
import pytest

from submax.research.paper import claims as combinatorial
from submax.research.paper import claims as contextual
from submax.research.paper.claims import ablation_statements, statements_of
from submax.research.paper.statements import Verdict
from submax.simulation.compare import Finals

SHIFTS = (0, -2, -4)
CONTEXTUAL = {
    "random": (300, 200, 60),
    "rcp-submax": (120, 100, 40),
    "rcp-optimized": (140, 125, 57),
    "rcp-optimistic": (150, 130, 58),
    "rcp-marginalized": (299, 199, 59),
    **dict.fromkeys(contextual.TILTED, (155, 135, 59)),
    **dict.fromkeys(contextual.WITHOUT_CONTEXT, (160, 140, 58)),
    **dict.fromkeys(contextual.OTHERS, (110, 105, 50)),
    **dict.fromkeys(contextual.CLASSIC, (100, 110, 55)),
}
COMBINATORIAL = {
    "random": 480,
    **dict.fromkeys(combinatorial.COMBINATORIAL_CLASSIC, 800),
    "hill-climbing-thompson": 900,
    "rcp-optimistic": 700,
    "rcp-submax": 1500,
    "rcp-adaptive": 1600,
}
ABLATIONS = {
    "random": 400,
    "reference": 100,
    "gate": 120,
    "concatenation": 130,
    "input-concatenation": 401,
    "separate-draws": 250,
    "draws-1": 110,
    "draws-3": 105,
    "draws-20": 90,
    "kl-0.5": 102,
    "kl-0": 104,
}


def contextual_finals(regrets) -> Finals:
    found = {
        ((("arms", 4), ("shift", shift), ("delay", 1000)), policy): value + np.array([-1.0, 0, 1])
        for policy, values in regrets.items()
        for shift, value in zip(SHIFTS, values, strict=True)
    }
    return Finals({key: {"regret": one, "reward": one} for key, one in found.items()})


def of_contexts(regrets):
    return contextual.contextual_statements(contextual_finals(regrets))


def of_joint_actions(rewards):
    labels = (("sizes", "2x4x8x16x32"), ("shift", -3), ("delay", 1000))
    found = {(labels, name): value + np.array([-10.0, 10.0]) for name, value in rewards.items()}
    regrets = {place: np.zeros(2) for place in found}
    return combinatorial.combinatorial_statements(
        Finals({key: {"regret": regrets[key], "reward": one} for key, one in found.items()})
    )


def of_ablations(regrets):
    found = {
        ((("shift", shift),), name): value + np.array([-10.0, 10.0])
        for shift in (0, -2)
        for name, value in regrets.items()
    }
    return ablation_statements(
        Finals({key: {"regret": one, "reward": one} for key, one in found.items()})
    )


def held(statements):
    """In how many configurations each statement holds."""
    return [one.counts[Verdict.HOLDS] for one in statements]


@pytest.mark.parametrize(
    ("statements", "numbers", "expected"),
    [
        (of_contexts, CONTEXTUAL, [1, 5, 1, 1, 1, 3, 3, 3, 1, 3, 3, 2]),
        (of_joint_actions, COMBINATORIAL, [1] * 6),
        (of_ablations, ABLATIONS, [2] * 10),
    ],
)
def test_all_hold_where_the_numbers_are_as_in_the_paper(statements, numbers, expected):
    found = statements(numbers)
    assert held(found) == [one.wanted for one in found] == expected


@pytest.mark.parametrize(
    ("change", "turned"),
    [
        ({"rcp-submax": (90, 90, 40)}, {0: 0}),
        (dict.fromkeys(contextual.CLASSIC, (100, 60, 20)), dict.fromkeys([1, 2, 3, 4, 8], 0)),
        ({"rcp-submax": (120, 100, 56)}, {4: 0, 8: 0}),
        ({"rcp-optimistic": (200, 230, 95)}, {3: 0}),
        ({"linucb": (110, 105, 30)}, {8: 0}),
        ({"thompson-1-1": (160, 99, 58)}, {9: 2}),
        ({"rcp-tilted-2": (119, 135, 59)}, {7: 2}),
        ({"rcp-optimistic": (130, 99, 58)}, {5: 2, 10: 1}),
        ({"random": (170, 200, 60)}, {11: 1}),
    ],
)
def test_statements_about_contexts_turn_with_their_numbers(change, turned):
    before, after = held(of_contexts(CONTEXTUAL)), held(of_contexts({**CONTEXTUAL, **change}))
    assert {place: now for place, now in enumerate(after) if now != before[place]} == turned


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"rcp-submax": 650}, [1, 1, 0, 0, 0, 1]),
        ({"rcp-submax": 470}, [1, 0, 0, 0, 0, 1]),
        ({"rcp-optimistic": 480}, [0, 1, 1, 1, 1, 1]),
        ({"climbing-dropout-thompson": 1600}, [1, 1, 1, 0, 1, 1]),
        ({"hill-climbing-thompson": 1600}, [1, 1, 1, 1, 0, 1]),
        ({"rcp-adaptive": 900}, [1, 1, 1, 1, 1, 0]),
    ],
)
def test_statements_about_joint_actions_turn_with_their_numbers(change, expected):
    assert held(of_joint_actions({**COMBINATORIAL, **change})) == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"input-concatenation": 200}, [1, 0, 1, 1, 1, 1, 1, 1, 1, 1]),
        ({"reference": 125}, [1, 1, 1, 0, 1, 0, 1, 1, 0, 1]),
        ({"reference": 140}, [1, 1, 0, 0, 1, 0, 1, 1, 0, 1]),
        ({"separate-draws": 90}, [1, 1, 1, 1, 0, 1, 1, 1, 1, 1]),
        ({"draws-1": 95, "draws-20": 105}, [1, 1, 1, 1, 1, 0, 0, 0, 1, 1]),
    ],
)
def test_statements_about_ablations_turn_with_their_numbers(change, expected):
    statements = of_ablations({**ABLATIONS, **change})
    assert [one.verdict is Verdict.HOLDS for one in statements] == [bool(one) for one in expected]


def test_the_numbers_of_a_comparison_are_those_of_the_sweep():
    (robust,) = of_contexts(CONTEXTUAL)[2].comparisons
    assert robust.left_mean == pytest.approx(40 / 60 - 120 / 300)
    assert robust.right_mean == pytest.approx(55 / 60 - 100 / 300)
    (joint,) = of_joint_actions(COMBINATORIAL)[2].comparisons
    assert (joint.left, joint.left_mean) == ("rcp-optimistic", 700)
    assert (joint.right, joint.right_mean) == ("rcp-submax", 1500)
    assert joint.error == pytest.approx(0)


@pytest.mark.parametrize("policy", list(CONTEXTUAL))
def test_missing_cells_leave_what_needs_them_untested(policy):
    without = {name: values for name, values in CONTEXTUAL.items() if name != policy}
    before, after = of_contexts(CONTEXTUAL), of_contexts(without)
    compared = [len(one.comparisons) for one in after]
    assert held(after) == compared
    assert sum(compared) < sum(len(one.comparisons) for one in before)


def test_nothing_run_and_no_regret_of_chance_do_not_stop_the_report():
    assert all(one.verdict is Verdict.NOT_RUN for one in of_contexts({}))
    assert of_contexts(dict.fromkeys(CONTEXTUAL, (0, 0, 0)))[1].comparisons == []
    assert len(statements_of("section 4.2", contextual_finals({}))) == 12
    assert statements_of("", contextual_finals({})) == []
    few = of_joint_actions({"random": 480, "rcp-submax": 1500})
    assert [len(one.comparisons) for one in few] == [0, 1, 0, 0, 0, 0]
