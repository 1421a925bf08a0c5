"""Verdicts on the paper's claims, in sweeps whose numbers are made up.

Claims are known by their place, because their sentences may be worded anew. That published verdicts
follow from the published replicas is tested in tests/docs.
"""

import itertools
import math

import numpy as np
import pytest

from submax.research.paper.claims import (
    CONDITIONED,
    CONSTANTS,
    PairedComparison,
    Statement,
    Verdict,
    best_elsewhere,
    environment_checks,
    family,
    illustration_statements,
    statements_of,
)
from submax.research.paper.illustration import illustrate
from submax.simulation.compare import Finals, Side
from submax.simulation.experiment import load_named

HOLDS, FAILS, UNDECIDED = Verdict.HOLDS, Verdict.FAILS, Verdict.UNDECIDED
POLICIES = [
    *family("$paper", "$strong", "$tilted"),
    "rcp-submax",
    "rcp-marginalized",
    "rcp-adaptive",
]
UCB1_AHEAD, TRUE_PRIOR_BEST, MOST_CONFIGURATIONS, SUBMAX_BEFORE_OPTIMIZED = 0, 6, 12, 16
CLASSIC = family("$classic")


def finals_of(cells) -> Finals:
    """Results of cells by labels and policy; every measure has the same values."""
    measures = ("regret", "reward", "late_slope")
    return Finals(
        (labels, policy, dict.fromkeys(measures, values)) for labels, policy, values in cells
    )


NOISE = np.array([-1.0, 0.0, 1.0])
GRID = [
    {"arms": arms, "alpha": 1, "beta": beta, "delay": delay}
    for arms, beta, delay in itertools.product((10, 100, 500), (1, 9, 99), (100, 500, 1000))
]


def of_arms(regret, more=()):
    cells = itertools.product(GRID, [*POLICIES, *more])
    return statements_of(
        "section 4.1", finals_of((at, name, regret(name, at["arms"]) + NOISE) for at, name in cells)
    )


def compared(differences) -> PairedComparison:
    differences = np.array(differences, dtype=float)
    return PairedComparison.of("here", Side("l", 0 * differences), Side("r", differences))


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        ([1.0, 1.0, 1.0], HOLDS),
        ([-1.0, -1.0], FAILS),
        ([0.0, 0.0], UNDECIDED),
        ([5.0], UNDECIDED),
        ([1.0, 1.05], HOLDS),
        # Three standard errors, of two replicas: Student has p = 0.2.
        ([1.0, 2.0], UNDECIDED),
        ([-3.0, 1.0], UNDECIDED),
    ],
)
def test_a_paired_t_test_decides(differences, verdict):
    assert compared(differences).verdict is verdict


def test_a_statement_sums_its_comparisons_up():
    holds, fails, undecided = compared([1, 1]), compared([-1, -1]), compared([-1, 1])
    for comparisons, verdict in {
        (): Verdict.NOT_RUN,
        (holds,): HOLDS,
        (holds, undecided, holds): UNDECIDED,
        (holds, undecided, fails): FAILS,
    }.items():
        statement = Statement("paper", "", "text", 3, list(comparisons))
        assert statement.verdict is verdict
        assert statement.counts[Verdict.NOT_RUN] == 3 - len(comparisons)
    assert statement.closest is fails


def test_a_rival_is_not_chosen_on_the_replicas_on_which_it_is_compared():
    """Of many equal rivals the best in hindsight looks better than it is; this one does not."""
    rng, means = np.random.default_rng(1), []
    for _ in range(200):
        sides = [Side(str(number), rng.normal(size=20)) for number in range(10)]
        means.append(best_elsewhere(sides).values.mean())
    assert abs(np.mean(means)) < 3 * np.std(means) / np.sqrt(len(means))
    assert best_elsewhere([Side("a", np.zeros(4)), None]) is None
    sides = [Side("low", np.zeros(4)), Side("high", np.ones(4))]
    assert (best_elsewhere(sides).name, best_elsewhere(sides, highest=True).name) == ("low", "high")


def test_claims_about_arms_follow_the_numbers():
    """Known by their places: 0–17 are those of the paper, the others our own."""
    order = ["rcp-submax", "thompson-1-9", "rcp-optimized", "rcp-optimistic"]

    def regret(policy: str, arms: int) -> float:
        rank = order.index(policy) if policy in order else 5
        return 100 + 10 * rank + (arms / 100 if policy in CLASSIC and rank == 5 else 0)

    statements = of_arms(regret)
    assert [one.source for one in statements] == ["paper"] * 18 + ["submax"] * 5
    assert all(len(one.comparisons) == one.wanted for one in statements)
    assert all(bool(one.quote) == (one.source == "paper") for one in statements)
    places = {verdict: set() for verdict in Verdict}
    for place, one in enumerate(statements):
        places[one.verdict].add(place)
    # UCB1 or ε-greedy or Thompson sampling ahead, and the default ahead of all.
    assert places[FAILS] == {UCB1_AHEAD, TRUE_PRIOR_BEST, 7, 9, 19, 20, 22}
    # The relative regret of the true prior is the same for all numbers of arms.
    assert places[UNDECIDED] == {4}
    prior = statements[TRUE_PRIOR_BEST].comparisons
    assert [one.left for one in prior] == ["thompson-1-1", "thompson-1-9", "thompson-1-99"]
    assert [one.verdict for one in prior] == [FAILS, HOLDS, FAILS]


@pytest.mark.parametrize(
    ("behind_at", "verdict"), [*enumerate([HOLDS, UNDECIDED, UNDECIDED, FAILS])]
)
def test_most_configurations_are_more_than_half(behind_at, verdict):
    """A share of 9 or 18 in 27 has the error 0.09: one half is less than two errors away."""
    behind = (10, 100, 500)[:behind_at]

    def regret(policy: str, arms: int) -> float:
        return 200.0 if policy == "rcp-submax" and arms in behind else 100.0 + (policy in CLASSIC)

    most = of_arms(regret)[MOST_CONFIGURATIONS]
    assert most.verdict is verdict
    assert most.closest.left_mean == pytest.approx(behind_at / 3)


def test_missing_cells_leave_a_statement_not_run():
    labels = GRID[3]
    cells = [(labels, "rcp-submax", np.array([1.0, 2.0]))]
    for one in statements_of("section 4.1", finals_of(cells)):
        assert one.verdict is Verdict.NOT_RUN
    cells.append((labels, "rcp-optimized", np.array([2.0, 3.0])))
    part = statements_of("section 4.1", finals_of(cells))[SUBMAX_BEFORE_OPTIMIZED]
    assert part.counts == {HOLDS: 1, Verdict.NOT_RUN: 26}
    assert statements_of("", finals_of([])) == []


def test_a_verdict_can_depend_on_the_smoothing():
    more = [f"{name}, c = {constant}" for name in CONDITIONED for constant in CONSTANTS]

    def regret(policy: str, arms: int) -> float:
        name, _, constant = policy.partition(", c = ")
        rank = CONDITIONED.index(name) if name in CONDITIONED else 5
        return 100.0 + (10 * rank if constant == "1" else -10 * rank)

    found = of_arms(regret, more)[SUBMAX_BEFORE_OPTIMIZED]
    assert found.verdict is Verdict.DEPENDS
    assert found.by_smoothing["c = 1"] is FAILS
    assert found.by_smoothing["preset"] is found.by_smoothing["c = 0.01"] is HOLDS


CONTEXTUAL = {
    "random": (300, 200, 60),
    "rcp-submax": (120, 100, 40),
    "rcp-optimized": (140, 125, 57),
    "rcp-optimistic": (150, 130, 58),
    "rcp-marginalized": (299, 199, 59),
    **dict.fromkeys(family("$tilted"), (155, 135, 59)),
    **dict.fromkeys(family("$without-context"), (160, 140, 58)),
    **dict.fromkeys(family("$baselines"), (110, 105, 50)),
    **dict.fromkeys(family("$neural"), (100, 110, 55)),
}
COMBINATORIAL = {
    "random": 480,
    **dict.fromkeys(family("$climbing"), 800),
    "hill-climbing-thompson": 900,
    "rcp-optimistic": 700,
    "rcp-submax": 1500,
    "rcp-adaptive": 1600,
}
ABLATIONS = {"random": 400, "reference": 100, "gate": 120, "concatenation": 130} | {
    "input-concatenation": 401, "separate-draws": 250, "draws-1": 110, "draws-3": 105,
    "draws-20": 90, "kl-0.5": 102, "kl-0": 104,
}  # fmt: skip


def of_shifts(section, shifts, values):
    """Statements on results with a value, or one for each shift."""
    cells = itertools.product(enumerate(shifts), values.items())
    return statements_of(
        section,
        finals_of(({"shift": s}, name, np.resize(v, 3)[i] + NOISE) for (i, s), (name, v) in cells),
    )


def test_all_claims_hold_where_the_numbers_are_as_in_the_paper():
    expected = [1, 5, 1, 1, 1, 3, 3, 3, 1, 3, 3, 2]
    for found, wanted in (
        (of_shifts("section 4.2", [0, -2, -4], CONTEXTUAL), expected),
        (of_shifts("section 4.3", [-3], COMBINATORIAL), [1] * 6),
        (of_shifts("ablations", [0, -2], ABLATIONS), [2] * 10),
    ):
        assert [one.counts[HOLDS] for one in found] == [one.wanted for one in found] == wanted


def test_the_numbers_of_a_comparison_are_those_of_the_sweep():
    (robust,) = of_shifts("section 4.2", [0, -2, -4], CONTEXTUAL)[2].comparisons
    assert robust.left_mean == pytest.approx(40 / 60 - 120 / 300)
    assert robust.right_mean == pytest.approx(55 / 60 - 100 / 300)
    (joint,) = of_shifts("section 4.3", [-3], COMBINATORIAL)[2].comparisons
    assert (joint.left, joint.left_mean) == ("rcp-optimistic", 700)
    assert (joint.right, joint.right_mean) == ("rcp-submax", 1500)
    assert joint.error == pytest.approx(0)


def test_statements_about_the_illustration_hold(tmp_path):
    own = load_named("illustration").changed(replicas=300)
    illustrate(own, tmp_path)
    random, order, zeroed = illustration_statements(tmp_path)
    assert random.verdict is order.verdict is zeroed.verdict is HOLDS
    # Two actions are zeroed only if both reach their bound at the same weight.
    assert 1 <= zeroed.comparisons[0].left_mean < 1.2
    assert zeroed.comparisons[0].right_mean > 2


def checks_of(section, rewards):
    cells = (({"shift": shift}, "random", np.array(one)) for shift, one in rewards.items())
    return list(environment_checks(section, finals_of(cells), 1000))


def test_mean_rewards_are_compared_with_those_of_the_paper():
    (one,) = checks_of("section 4.2", {0: [510.0, 490.0, 520.0, 480.0], -3: [1.0, 2.0]})
    assert (one.where, one.paper, one.mean) == ("shift=0", 0.501, pytest.approx(0.5))
    deviation = np.std([510.0, 490.0, 520.0, 480.0], ddof=1) / 1000
    # Four environments here, fifty in the paper, of the same spread.
    assert one.error == pytest.approx(deviation * math.sqrt(1 / 4 + 1 / 50))
    assert one.distance == pytest.approx(-0.001 / one.error)
    (joint,) = checks_of("section 4.3", {-3: [40.0, 60.0]})
    assert (joint.where, joint.paper, joint.mean) == ("shift=-3", 0.0483, pytest.approx(0.05))
    for section, rewards in (
        ("", {0: [1.0, 2.0]}),
        ("section 4.2", {}),
        ("section 4.2", {0: [5.0]}),
    ):
        assert checks_of(section, rewards) == []
    (alike,) = checks_of("section 4.2", {0: [900.0, 900.0]})
    assert (alike.error, alike.distance) == (0, math.inf)
