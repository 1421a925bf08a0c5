import numpy as np
import pytest

from submax.experiments.comparing.paired_comparison import Finals
from submax.experiments.statements.combinatorial_statements import (
    CLASSIC,
    combinatorial_statements,
)
from submax.experiments.statements.verdict import Verdict

AS_IN_THE_PAPER = {
    "random": 480,
    **dict.fromkeys(CLASSIC, 800),
    "hill-climbing-thompson": 900,
    "rcp-optimistic": 700,
    "rcp-submax": 1500,
    "rcp-adaptive": 1600,
}
TEXTS = [
    "Optimistic earns more than chance",
    "SubMax earns more than chance",
    "SubMax earns more than optimistic",
    "SubMax earns more than the best of neural ε-greedy and dropout Thompson",
    "SubMax earns more than hill climbing with Thompson sampling",
    "The default rcp-adaptive earns more than SubMax with a CVAE",
]


def statements_where(rewards, regret=0.0):
    labels = (("sizes", "2x4x8x16x32"), ("shift", -3), ("delay", 1000))
    found = {(labels, name): value + np.array([-10.0, 10.0]) for name, value in rewards.items()}
    regrets = {place: np.full(2, regret) for place in found}
    return combinatorial_statements(Finals(regrets, found, {}))


def test_all_hold_where_the_rewards_are_as_in_the_paper():
    statements = statements_where(AS_IN_THE_PAPER)
    assert [one.text for one in statements] == TEXTS
    assert [one.summary for one in statements] == ["holds"] * 6
    (comparison,) = statements[2].comparisons
    assert (comparison.left, comparison.left_mean) == ("rcp-optimistic", 700)
    assert (comparison.right, comparison.right_mean) == ("rcp-submax", 1500)
    assert comparison.error == pytest.approx(0)


@pytest.mark.parametrize(
    ("change", "held"),
    [
        ({"rcp-submax": 650}, [1, 1, 0, 0, 0, 1]),
        ({"rcp-submax": 470}, [1, 0, 0, 0, 0, 1]),
        ({"rcp-optimistic": 480}, [0, 1, 1, 1, 1, 1]),
        ({"climbing-dropout-thompson": 1600}, [1, 1, 1, 0, 1, 1]),
        ({"hill-climbing-thompson": 1600}, [1, 1, 1, 1, 0, 1]),
        ({"rcp-adaptive": 900}, [1, 1, 1, 1, 1, 0]),
    ],
)
def test_each_turns_with_its_numbers(change, held):
    statements = statements_where({**AS_IN_THE_PAPER, **change})
    assert [one.counts[Verdict.HOLDS] for one in statements] == held


def test_missing_cells_leave_a_statement_not_run():
    statements = statements_where({"random": 480, "rcp-submax": 1500})
    assert [len(one.comparisons) for one in statements] == [0, 1, 0, 0, 0, 0]
