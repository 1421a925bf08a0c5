import itertools

import numpy as np
import pytest

from submax.experiments.paired_comparison import Finals, PairedComparison, Side
from submax.experiments.statements.bernoulli_statements import CLASSIC, OTHERS, bernoulli_statements


def place(arms: int, beta: int, delay: int, policy: str):
    return (("arms", arms), ("alpha", 1), ("beta", beta), ("delay", delay)), policy


def sweep_where(regret) -> Finals:
    grid = itertools.product((10, 100, 500), (1, 9, 99), (100, 500, 1000))
    finals = {
        place(arms, beta, delay, policy): regret(policy, arms) + np.array([-1.0, 0.0, 1.0])
        for arms, beta, delay in grid
        for policy in [*OTHERS, "rcp-submax"]
    }
    return Finals(finals, finals, {key: values.mean() / 10 for key, values in finals.items()})


def test_comparison_is_paired():
    left, right = Side("l", np.array([1.0, 2.0, 3.0])), Side("r", np.array([2.0, 3.0, 4.5]))
    comparison = PairedComparison.of("here", left, right)
    assert comparison.holds
    assert comparison.error == pytest.approx(np.std([1, 1, 1.5], ddof=1) / np.sqrt(3))


def test_statements_follow_the_numbers():
    order = ["rcp-submax", "thompson-1-9", "rcp-optimized", "rcp-optimistic"]

    def regret(policy: str, arms: int) -> float:
        rank = order.index(policy) if policy in order else 5
        return 100 + 10 * rank + (arms / 100 if policy in CLASSIC and rank == 5 else 0)

    by_text = {s.text: s for s in bernoulli_statements(sweep_where(regret))}
    assert len(by_text) == 14
    held = {text: (s.held, len(s.comparisons)) for text, s in by_text.items()}
    assert held["SubMax has less regret than optimized"] == (27, 27)
    assert held["Optimistic has less regret than random"] == (27, 27)
    assert held["SubMax is best for every K (Beta(1,9), N_b=100)"] == (3, 3)
    assert held["Thompson sampling is ahead of SubMax at N_b=1000 (K=100, Beta(1,9))"] == (0, 1)
    assert held["ε-greedy is ahead of SubMax at Beta(1,99) (K=100, N_b=100)"] == (0, 1)
    assert held["SubMax is nearest to the best of each configuration, on average"] == (1, 1)
    degrade = "Classic methods lose, relative to random, from K=10 to 500 (Beta(1,9), N_b=100)"
    assert held[degrade] == (7, 7)
    assert held["Thompson with the true prior is ahead of SubMax at N_b=1000"] == (0, 9)
    prior = by_text["Thompson with the true prior is the best classic method (K=100, N_b=100)"]
    assert [comparison.left for comparison in prior.comparisons] == [
        "thompson-1-1", "thompson-1-9", "thompson-1-99",
    ]  # fmt: skip
    assert [comparison.holds for comparison in prior.comparisons] == [False, True, False]


def test_statements_turn_with_the_numbers():
    def regret(policy: str, arms: int) -> float:
        return 300.0 if policy == "rcp-submax" else 100.0

    by_text = {s.text: s for s in bernoulli_statements(sweep_where(regret))}
    submax = by_text["SubMax has less regret than optimized"]
    assert (submax.held, len(submax.comparisons)) == (0, 27)
    assert submax.closest.left_mean == pytest.approx(300)
    assert submax.closest.right_mean == pytest.approx(100)


def test_missing_cells_leave_a_statement_untested():
    regrets = Finals({place(10, 9, 100, "rcp-submax"): np.array([1.0, 2.0])}, {}, {})
    statements = bernoulli_statements(regrets)
    assert all(not statement.comparisons for statement in statements)


def test_zero_regret_does_not_stop_the_report():
    regrets = sweep_where(lambda policy, arms: 0.0)
    for statement in bernoulli_statements(regrets):
        assert not statement.comparisons or statement.closest in statement.comparisons
