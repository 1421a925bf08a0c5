import itertools
import math

import numpy as np
import pytest

from submax.research.paper.bernoulli_claims import CLASSIC, PAPER, STRONG, bernoulli_statements
from submax.research.paper.statements import PairedComparison, Statement, Verdict
from submax.simulation.compare import Finals, Side

POLICIES = [*PAPER, *STRONG, "rcp-submax", "rcp-marginalized", "rcp-adaptive"]
UCB1_AHEAD, TRUE_PRIOR_BEST, MOST_CONFIGURATIONS, SUBMAX_BEFORE_OPTIMIZED = 0, 6, 12, 15
"""Places of some statements, whose sentences may be worded anew."""


def place(arms: int, beta: int, delay: int, policy: str):
    return (("arms", arms), ("alpha", 1), ("beta", beta), ("delay", delay)), policy


def sweep_where(regret) -> Finals:
    grid = itertools.product((10, 100, 500), (1, 9, 99), (100, 500, 1000))
    finals = {
        place(arms, beta, delay, policy): regret(policy, arms) + np.array([-1.0, 0.0, 1.0])
        for arms, beta, delay in grid
        for policy in POLICIES
    }
    return Finals(
        {key: {"regret": one, "reward": one, "late_slope": one / 10} for key, one in finals.items()}
    )


def compared(differences) -> PairedComparison:
    differences = np.array(differences, dtype=float)
    return PairedComparison.of("here", Side("l", 0 * differences), Side("r", differences))


def test_comparison_is_paired():
    left, right = Side("l", np.array([1.0, 2.0, 3.0])), Side("r", np.array([2.0, 3.0, 4.5]))
    comparison = PairedComparison.of("here", left, right)
    assert comparison.verdict is Verdict.HOLDS
    assert comparison.error == pytest.approx(np.std([1, 1, 1.5], ddof=1) / np.sqrt(3))
    assert comparison.distance == pytest.approx(3.5 / 3 / comparison.error)


@pytest.mark.parametrize(
    ("differences", "verdict"),
    [
        ([1.0, 1.0, 1.0], Verdict.HOLDS),
        ([-1.0, -1.0], Verdict.FAILS),
        ([0.0, 0.0], Verdict.UNDECIDED),
        ([5.0], Verdict.UNDECIDED),
        ([1.0, 1.4], Verdict.HOLDS),
        ([0.0, 2.0], Verdict.UNDECIDED),
        ([-3.0, 1.0], Verdict.UNDECIDED),
    ],
)
def test_two_standard_errors_decide(differences, verdict):
    assert compared(differences).verdict is verdict


def test_a_statement_sums_its_comparisons_up():
    holds, fails, open_ = compared([1, 1]), compared([-1, -1]), compared([-1, 1])
    cases = {
        (): Verdict.NOT_RUN,
        (holds,): Verdict.HOLDS,
        (holds, open_, holds): Verdict.UNDECIDED,
        (holds, open_, fails): Verdict.FAILS,
    }
    for comparisons, verdict in cases.items():
        statement = Statement("paper", "", "text", 3, list(comparisons))
        assert statement.verdict is verdict
        assert statement.counts[Verdict.NOT_RUN] == 3 - len(comparisons)
    assert Statement("paper", "", "text", 3, [holds, fails]).closest is fails


def test_statements_follow_the_numbers():
    """Known by their places: 0–16 are those of the paper, the others our own."""
    order = ["rcp-submax", "thompson-1-9", "rcp-optimized", "rcp-optimistic"]

    def regret(policy: str, arms: int) -> float:
        rank = order.index(policy) if policy in order else 5
        return 100 + 10 * rank + (arms / 100 if policy in CLASSIC and rank == 5 else 0)

    statements = bernoulli_statements(sweep_where(regret))
    assert [one.source for one in statements] == ["paper"] * 17 + ["submax"] * 5
    assert all(len(one.comparisons) == one.wanted for one in statements)
    assert all(bool(one.quote) == (one.source == "paper") for one in statements)
    fails = {place for place, one in enumerate(statements) if one.verdict is Verdict.FAILS}
    # UCB1 or ε-greedy or Thompson sampling ahead, and the default ahead of all.
    assert fails == {UCB1_AHEAD, TRUE_PRIOR_BEST, 7, 9, 18, 19, 21}
    # The relative regret of the true prior is the same for all numbers of arms.
    undecided = {place for place, one in enumerate(statements) if one.verdict is Verdict.UNDECIDED}
    assert undecided == {4}
    prior = statements[TRUE_PRIOR_BEST].comparisons
    assert [one.left for one in prior] == ["thompson-1-1", "thompson-1-9", "thompson-1-99"]
    verdicts = [Verdict.FAILS, Verdict.HOLDS, Verdict.FAILS]
    assert [one.verdict for one in prior] == verdicts


def test_statements_turn_with_the_numbers():
    def regret(policy: str, arms: int) -> float:
        return 300.0 if policy == "rcp-submax" else 100.0

    statement = bernoulli_statements(sweep_where(regret))[SUBMAX_BEFORE_OPTIMIZED]
    assert statement.counts == {Verdict.FAILS: 27}
    assert statement.closest.left_mean == pytest.approx(300)
    assert statement.closest.right_mean == pytest.approx(100)
    assert statement.closest.distance == -math.inf


@pytest.mark.parametrize(
    ("behind_at", "verdict"),
    [(0, Verdict.HOLDS), (1, Verdict.UNDECIDED), (2, Verdict.UNDECIDED), (3, Verdict.FAILS)],
)
def test_most_configurations_are_more_than_half(behind_at, verdict):
    """A share of 9 or 18 in 27 has the error 0.09: one half is less than two errors away."""
    behind = (10, 100, 500)[:behind_at]

    def regret(policy: str, arms: int) -> float:
        return 200.0 if policy == "rcp-submax" and arms in behind else 100.0 + (policy in CLASSIC)

    most = bernoulli_statements(sweep_where(regret))[MOST_CONFIGURATIONS]
    assert most.verdict is verdict
    assert most.closest.left_mean == pytest.approx(behind_at / 3)


def test_missing_cells_leave_a_statement_not_run():
    regrets = {place(10, 9, 100, "rcp-submax"): np.array([1.0, 2.0])}
    statements = bernoulli_statements(
        Finals({key: {"regret": one, "late_slope": one} for key, one in regrets.items()})
    )
    assert all(statement.verdict is Verdict.NOT_RUN for statement in statements)
    regrets[place(10, 9, 100, "rcp-optimized")] = np.array([2.0, 3.0])
    part = bernoulli_statements(
        Finals({key: {"regret": one, "late_slope": one} for key, one in regrets.items()})
    )[SUBMAX_BEFORE_OPTIMIZED]
    assert part.counts == {Verdict.HOLDS: 1, Verdict.NOT_RUN: 26}


def test_zero_regret_does_not_stop_the_report():
    regrets = sweep_where(lambda policy, arms: 0.0)
    for statement in bernoulli_statements(regrets):
        assert not statement.comparisons or statement.closest in statement.comparisons
