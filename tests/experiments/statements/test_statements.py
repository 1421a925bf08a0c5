import itertools
import math

import numpy as np
import pytest

from submax.experiments.comparing.paired_comparison import Finals, PairedComparison, Side
from submax.experiments.statements.bernoulli_comparisons import CLASSIC, PAPER, STRONG
from submax.experiments.statements.bernoulli_statements import bernoulli_statements
from submax.experiments.statements.statement import Statement
from submax.experiments.statements.verdict import Verdict

POLICIES = [*PAPER, *STRONG, "rcp-submax", "rcp-marginalized", "rcp-adaptive"]


def place(arms: int, beta: int, delay: int, policy: str):
    return (("arms", arms), ("alpha", 1), ("beta", beta), ("delay", delay)), policy


def sweep_where(regret) -> Finals:
    grid = itertools.product((10, 100, 500), (1, 9, 99), (100, 500, 1000))
    finals = {
        place(arms, beta, delay, policy): regret(policy, arms) + np.array([-1.0, 0.0, 1.0])
        for arms, beta, delay in grid
        for policy in POLICIES
    }
    return Finals(finals, finals, {key: values / 10 for key, values in finals.items()})


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
        (): (Verdict.NOT_RUN, "not run"),
        (holds,): (Verdict.HOLDS, "holds: holds in 1, not run in 2 of 3"),
        (holds, open_, holds): (Verdict.UNDECIDED, "undecided: holds in 2, undecided in 1 of 3"),
        (holds, open_, fails): (
            Verdict.FAILS,
            "does not hold: holds in 1, does not hold in 1, undecided in 1 of 3",
        ),
    }
    for comparisons, (verdict, summary) in cases.items():
        statement = Statement("paper", "", "text", 3, list(comparisons))
        assert (statement.verdict, statement.summary) == (verdict, summary)
    assert Statement("paper", "", "text", 3, [holds, fails]).closest is fails
    assert Statement("paper", "", "text", 1, [holds]).summary == "holds"


def test_statements_follow_the_numbers():
    order = ["rcp-submax", "thompson-1-9", "rcp-optimized", "rcp-optimistic"]

    def regret(policy: str, arms: int) -> float:
        rank = order.index(policy) if policy in order else 5
        return 100 + 10 * rank + (arms / 100 if policy in CLASSIC and rank == 5 else 0)

    by_text = {s.text: s for s in bernoulli_statements(sweep_where(regret))}
    assert len(by_text) == 22
    assert all(len(one.comparisons) == one.wanted for one in by_text.values())
    assert all(bool(one.quote) == (one.source == "paper") for one in by_text.values())
    verdicts = {text: one.verdict for text, one in by_text.items()}
    holds = {text for text, verdict in verdicts.items() if verdict is Verdict.HOLDS}
    assert holds == {
        "The best Thompson prior has less regret than optimistic",
        "The best of UCB1 and Thompson has less regret than the marginalized policy",
        "Classic methods lose, relative to random, from K=10 to 500 (Beta(1,9), N_b=100)",
        "SubMax is best for every K (Beta(1,9), N_b=100)",
        "SubMax is best for N_b=100 and 500 (K=100, Beta(1,9))",
        "SubMax then adds less regret per decision at the end",
        "SubMax is nearest to the best of each configuration, on average",
        "SubMax is nearest to the best, on average, with the classic methods added here",
        "SubMax is ahead of all classic methods of the paper in most configurations",
        "SubMax has less regret than the best classic method of the paper (K=500, Beta(1,99))",
        "SubMax has less regret than the marginalized policy",
        "SubMax has less regret than optimized",
        "Optimized has less regret than optimistic",
        "Optimistic has less regret than random",
    }
    assert verdicts["UCB1 has less regret than optimistic"] is Verdict.FAILS
    # Its relative regret is the same for all K.
    assert (
        verdicts["Thompson with the true prior does not lose, relative to random, from K=10 to 500"]
        is Verdict.UNDECIDED
    )
    prior = by_text["Thompson with the true prior is the best classic method (K=100, N_b=100)"]
    assert [comparison.left for comparison in prior.comparisons] == [
        "thompson-1-1", "thompson-1-9", "thompson-1-99",
    ]  # fmt: skip
    assert [one.verdict for one in prior.comparisons] == [
        Verdict.FAILS, Verdict.HOLDS, Verdict.FAILS,
    ]  # fmt: skip


def test_statements_turn_with_the_numbers():
    def regret(policy: str, arms: int) -> float:
        return 300.0 if policy == "rcp-submax" else 100.0

    by_text = {s.text: s for s in bernoulli_statements(sweep_where(regret))}
    submax = by_text["SubMax has less regret than optimized"]
    assert submax.counts == {Verdict.FAILS: 27}
    assert submax.closest.left_mean == pytest.approx(300)
    assert submax.closest.right_mean == pytest.approx(100)
    assert submax.closest.distance == -math.inf


@pytest.mark.parametrize(
    ("behind_at", "verdict"),
    [(0, Verdict.HOLDS), (1, Verdict.UNDECIDED), (2, Verdict.UNDECIDED), (3, Verdict.FAILS)],
)
def test_most_configurations_are_more_than_half(behind_at, verdict):
    """A share of 9 or 18 in 27 has the error 0.09: one half is less than two errors away."""
    behind = (10, 100, 500)[:behind_at]

    def regret(policy: str, arms: int) -> float:
        return 200.0 if policy == "rcp-submax" and arms in behind else 100.0 + (policy in CLASSIC)

    by_text = {s.text: s for s in bernoulli_statements(sweep_where(regret))}
    most = by_text["SubMax is ahead of all classic methods of the paper in most configurations"]
    assert most.verdict is verdict
    assert most.closest.left_mean == pytest.approx(behind_at / 3)


def test_missing_cells_leave_a_statement_not_run():
    regrets = Finals({place(10, 9, 100, "rcp-submax"): np.array([1.0, 2.0])}, {}, {})
    statements = bernoulli_statements(regrets)
    assert all(statement.verdict is Verdict.NOT_RUN for statement in statements)


def test_a_part_of_the_configurations_says_what_was_not_run():
    regrets = {
        place(10, 9, 100, "rcp-submax"): np.array([1.0, 2.0]),
        place(10, 9, 100, "rcp-optimized"): np.array([2.0, 3.0]),
    }
    by_text = {s.text: s for s in bernoulli_statements(Finals(regrets, regrets, {}))}
    summary = by_text["SubMax has less regret than optimized"].summary
    assert summary == "holds: holds in 1, not run in 26 of 27"


def test_zero_regret_does_not_stop_the_report():
    regrets = sweep_where(lambda policy, arms: 0.0)
    for statement in bernoulli_statements(regrets):
        assert not statement.comparisons or statement.closest in statement.comparisons
