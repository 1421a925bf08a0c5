import itertools
import math

import numpy as np
import pytest

from submax.research.paper.bernoulli_claims import (
    CLASSIC,
    CONDITIONED,
    CONSTANTS,
    PAPER,
    STRONG,
    TILTED,
    bernoulli_statements,
)
from submax.research.paper.statements import (
    PairedComparison,
    Statement,
    Verdict,
    best_elsewhere,
    corrected,
)
from submax.simulation.compare import Finals, Side

POLICIES = [*PAPER, *STRONG, *TILTED, "rcp-submax", "rcp-marginalized", "rcp-adaptive"]
UCB1_AHEAD, TRUE_PRIOR_BEST, MOST_CONFIGURATIONS, SUBMAX_BEFORE_OPTIMIZED = 0, 6, 12, 16
"""Places of some statements, whose sentences may be worded anew."""


def place(arms: int, beta: int, delay: int, policy: str):
    return (("arms", arms), ("alpha", 1), ("beta", beta), ("delay", delay)), policy


def sweep_where(regret, more=()) -> Finals:
    grid = itertools.product((10, 100, 500), (1, 9, 99), (100, 500, 1000))
    finals = {
        place(arms, beta, delay, policy): regret(policy, arms) + np.array([-1.0, 0.0, 1.0])
        for arms, beta, delay in grid
        for policy in [*POLICIES, *more]
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
        ([1.0, 1.05], Verdict.HOLDS),
        # Three standard errors, of two replicas: Student has p = 0.2.
        ([1.0, 2.0], Verdict.UNDECIDED),
        ([0.0, 2.0], Verdict.UNDECIDED),
        ([-3.0, 1.0], Verdict.UNDECIDED),
    ],
)
def test_a_paired_t_test_decides(differences, verdict):
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
    """Known by their places: 0–17 are those of the paper, the others our own."""
    order = ["rcp-submax", "thompson-1-9", "rcp-optimized", "rcp-optimistic"]

    def regret(policy: str, arms: int) -> float:
        rank = order.index(policy) if policy in order else 5
        return 100 + 10 * rank + (arms / 100 if policy in CLASSIC and rank == 5 else 0)

    statements = bernoulli_statements(sweep_where(regret))
    assert [one.source for one in statements] == ["paper"] * 18 + ["submax"] * 5
    assert all(len(one.comparisons) == one.wanted for one in statements)
    assert all(bool(one.quote) == (one.source == "paper") for one in statements)
    fails = {place for place, one in enumerate(statements) if one.verdict is Verdict.FAILS}
    # UCB1 or ε-greedy or Thompson sampling ahead, and the default ahead of all.
    assert fails == {UCB1_AHEAD, TRUE_PRIOR_BEST, 7, 9, 19, 20, 22}
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


def test_comparisons_of_a_statement_share_the_chance_of_a_mistake():
    """One difference of 2.2 standard errors decides alone, and not among five."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=400)
    noise = (noise - noise.mean()) / noise.std(ddof=1)
    one = compared(noise + 2.2 / 20)
    assert corrected([one])[0].verdict is Verdict.HOLDS
    others = [compared(noise + 0.1 / 20) for _ in range(4)]
    assert corrected([one, *others])[0].verdict is Verdict.UNDECIDED


def test_a_rival_is_not_chosen_on_the_replicas_on_which_it_is_compared():
    """Of many equal rivals the best in hindsight looks better than it is; this one does not."""
    rng = np.random.default_rng(1)
    means = []
    for _ in range(200):
        sides = [Side(str(number), rng.normal(size=20)) for number in range(10)]
        means.append(best_elsewhere(sides).values.mean())
    assert abs(np.mean(means)) < 3 * np.std(means) / np.sqrt(len(means))
    assert best_elsewhere([Side("a", np.zeros(4)), None]) is None
    good = best_elsewhere([Side("bad", np.ones(4)), Side("good", np.zeros(4))])
    assert (good.name, good.values.tolist()) == ("good", [0, 0, 0, 0])
    top = best_elsewhere([Side("bad", np.ones(4)), Side("good", 2 + np.zeros(4))], highest=True)
    assert top.name == "good"


def test_a_verdict_can_depend_on_the_smoothing():
    more = [f"{name}, c = {constant}" for name in CONDITIONED for constant in CONSTANTS]

    def regret(policy: str, arms: int) -> float:
        name, _, constant = policy.partition(", c = ")
        rank = CONDITIONED.index(name) if name in CONDITIONED else 5
        return 100.0 + (10 * rank if constant == "1" else -10 * rank)

    found = bernoulli_statements(sweep_where(regret, more))[SUBMAX_BEFORE_OPTIMIZED]
    assert found.verdict is Verdict.DEPENDS
    assert found.by_smoothing["c = 1"] is Verdict.FAILS
    assert found.by_smoothing["preset"] is found.by_smoothing["c = 0.01"] is Verdict.HOLDS
