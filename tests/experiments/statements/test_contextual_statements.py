import numpy as np
import pytest

from submax.experiments.comparing.paired_comparison import Finals
from submax.experiments.statements.contextual_statements import (
    CLASSIC,
    OTHERS,
    contextual_statements,
)
from submax.experiments.statements.statements import statements_of
from submax.experiments.statements.verdict import Verdict

SPREAD = np.array([-1.0, 0.0, 1.0])
SHIFTS = (0, -2, -4)
AS_IN_THE_PAPER = {
    "random": (300, 200, 60),
    "rcp-submax": (120, 100, 40),
    "rcp-optimized": (140, 125, 57),
    "rcp-optimistic": (150, 130, 58),
    **dict.fromkeys(OTHERS, (110, 105, 50)),
    **dict.fromkeys(CLASSIC, (100, 110, 55)),
}
TEXTS = [
    "The best classic method has less regret than SubMax at s=0",
    "Classic methods lose, relative to random, from s=0 to s=-4",
    "SubMax loses less than the best classic method does",
    "Optimistic loses less than the best classic method does",
    "SubMax is the best method of the paper at s=-4",
    "SubMax has less regret than optimistic",
    "SubMax is also ahead of the other baselines at s=-4",
    "Optimized, which the paper does not run here, has less regret than optimistic",
    "SubMax has less than two thirds of random's regret (s=0, -2)",
]


def finals_where(regrets) -> Finals:
    found = {
        ((("arms", 4), ("shift", shift), ("delay", 1000)), policy): value + SPREAD
        for policy, values in regrets.items()
        for shift, value in zip(SHIFTS, values, strict=True)
    }
    return Finals(found, found, {})


def held(regrets) -> dict[str, tuple[int, int]]:
    statements = contextual_statements(finals_where(regrets))
    return {one.text: (one.counts[Verdict.HOLDS], len(one.comparisons)) for one in statements}


def test_all_hold_where_the_numbers_are_as_in_the_paper():
    expected = dict(zip(TEXTS, [1, 5, 1, 1, 1, 3, 1, 3, 2], strict=True))
    assert held(AS_IN_THE_PAPER) == {text: (count, count) for text, count in expected.items()}


@pytest.mark.parametrize(
    ("change", "turned"),
    [
        ({"rcp-submax": (90, 90, 40)}, {TEXTS[0]: 0}),
        (
            dict.fromkeys(CLASSIC, (100, 60, 20)),
            dict.fromkeys([*TEXTS[1:5], TEXTS[6]], 0),
        ),
        ({"rcp-submax": (120, 100, 56)}, {TEXTS[4]: 0, TEXTS[6]: 0}),
        ({"rcp-optimistic": (200, 230, 95)}, {TEXTS[3]: 0}),
        ({"linucb": (110, 105, 30)}, {TEXTS[6]: 0}),
        ({"rcp-optimistic": (130, 99, 58)}, {TEXTS[5]: 2, TEXTS[7]: 1}),
        ({"random": (170, 200, 60)}, {TEXTS[8]: 1}),
    ],
)  # fmt: skip
def test_each_turns_with_its_numbers(change, turned):
    before, after = held(AS_IN_THE_PAPER), held({**AS_IN_THE_PAPER, **change})
    assert {text: after[text][0] for text in TEXTS if after[text] != before[text]} == turned


def test_the_share_that_is_added_is_the_one_of_the_numbers():
    (robust,) = contextual_statements(finals_where(AS_IN_THE_PAPER))[2].comparisons
    assert (robust.left, robust.right) == ("rcp-submax", "best classic")
    assert robust.left_mean == pytest.approx(40 / 60 - 120 / 300)
    assert robust.right_mean == pytest.approx(55 / 60 - 100 / 300)


@pytest.mark.parametrize("policy", list(AS_IN_THE_PAPER))
def test_missing_cells_leave_what_needs_them_untested(policy):
    without = {name: values for name, values in AS_IN_THE_PAPER.items() if name != policy}
    before, after = held(AS_IN_THE_PAPER), held(without)
    assert all(count == total for count, total in after.values())
    assert any(after[text][1] < before[text][1] for text in TEXTS)


def test_nothing_run_and_no_regret_of_chance_do_not_stop_the_report():
    assert all(total == 0 for _, total in held({}).values())
    zeros = held(dict.fromkeys(AS_IN_THE_PAPER, (0, 0, 0)))
    assert zeros[TEXTS[1]] == (0, 0)
    assert statements_of("section 4.2", finals_where({}))[0].text == TEXTS[0]
    assert statements_of("", finals_where({})) == []
