import numpy as np
import pytest

from submax.experiments.comparing.paired_comparison import Finals
from submax.experiments.statements.ablation_statements import ablation_statements
from submax.experiments.statements.verdict import Verdict

AS_IN_THE_PAPER = {
    "random": 400,
    "reference": 100,
    "gate": 120,
    "concatenation": 130,
    "input-concatenation": 401,
    "separate-draws": 250,
    "draws-1": 110,
    "draws-20": 90,
}


def statements_where(regrets):
    found = {
        ((("shift", shift),), name): value + np.array([-10.0, 10.0])
        for shift in (0, -2)
        for name, value in regrets.items()
    }
    return ablation_statements(Finals(found, found, {}))


def test_all_hold_if_the_regrets_are_as_in_the_paper():
    statements = statements_where(AS_IN_THE_PAPER)
    assert [one.source for one in statements] == ["paper"] * 2 + ["submax"] * 5
    assert all(one.counts == {Verdict.HOLDS: 2} for one in statements)


@pytest.mark.parametrize(
    ("change", "held"),
    [
        ({"input-concatenation": 200}, [1, 0, 1, 1, 1, 1, 1]),
        ({"reference": 125}, [1, 1, 1, 0, 1, 0, 1]),
        ({"reference": 140}, [1, 1, 0, 0, 1, 0, 1]),
        ({"separate-draws": 90}, [1, 1, 1, 1, 0, 1, 1]),
        ({"draws-1": 95, "draws-20": 105}, [1, 1, 1, 1, 1, 0, 0]),
    ],
)
def test_each_turns_with_its_numbers(change, held):
    statements = statements_where({**AS_IN_THE_PAPER, **change})
    assert [one.verdict is Verdict.HOLDS for one in statements] == [bool(one) for one in held]
