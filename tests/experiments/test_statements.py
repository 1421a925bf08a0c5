import itertools

import numpy as np
import pytest

from submax.experiments.cells import Cell
from submax.experiments.comparison import Comparison, Regrets, Side
from submax.experiments.results import Finished
from submax.experiments.statements import OTHERS, bernoulli_statements
from submax.simulation.cell_result import CellResult, Curve


def finished(arms: int, beta: int, delay: int, policy: str, final: np.ndarray) -> Finished:
    cell = Cell(
        labels={"arms": arms, "alpha": 1, "beta": beta, "delay": delay}, policy_name=policy,
        environment={}, delay={}, policy=policy, observations=10, replicas=len(final), seed=0,
        points=10,
    )  # fmt: skip
    steps = np.arange(1, 11)
    curve = Curve.of(final[:, None] * steps / 10)
    return Finished(cell, CellResult(steps, curve, curve, final, final, 0.0))


def sweep_where(regret) -> Regrets:
    grid = itertools.product((10, 100, 500), (1, 9, 99), (100, 500, 1000))
    return Regrets(
        [
            finished(arms, beta, delay, policy, regret(policy, arms) + np.array([-1.0, 0.0, 1.0]))
            for arms, beta, delay in grid
            for policy in [*OTHERS, "rcp-submax"]
        ]
    )


def test_comparison_is_paired():
    left, right = Side("l", np.array([1.0, 2.0, 3.0])), Side("r", np.array([2.0, 3.0, 4.5]))
    comparison = Comparison.of("here", left, right)
    assert comparison.holds
    assert comparison.error == pytest.approx(np.std([1, 1, 1.5], ddof=1) / np.sqrt(3))


def test_statements_follow_the_numbers():
    order = ["rcp-submax", "thompson-1-9", "rcp-optimized", "rcp-optimistic"]

    def regret(policy: str, arms: int) -> float:
        rank = order.index(policy) if policy in order else 5
        return 100 + 10 * rank + (0 if policy == "thompson-1-9" else arms / 100)

    by_text = {s.text: s for s in bernoulli_statements(sweep_where(regret))}
    assert len(by_text) == 12
    held = {text: (s.held, len(s.comparisons)) for text, s in by_text.items()}
    assert held["SubMax has less regret than optimized"] == (27, 27)
    assert held["Optimistic has less regret than random"] == (27, 27)
    assert held["SubMax is best for every K (Beta(1,9), N_b=100)"] == (3, 3)
    assert held["Thompson sampling is ahead of SubMax at N_b=1000 (K=100, Beta(1,9))"] == (0, 1)
    assert held["ε-greedy is ahead of SubMax at Beta(1,99) (K=100, N_b=100)"] == (0, 1)
    assert held["SubMax is nearest to the best of each configuration, on average"] == (1, 1)
    assert held["Classic methods lose when K grows from 10 to 500 (Beta(1,9), N_b=100)"] == (7, 7)
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
    regrets = Regrets([finished(10, 9, 100, "rcp-submax", np.array([1.0, 2.0]))])
    statements = bernoulli_statements(regrets)
    assert all(not statement.comparisons for statement in statements)
