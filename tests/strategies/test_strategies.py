"""Strategies of one line, by hand and by their limits."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from refusals import raises_code
from scipy.optimize import minimize

from submax import Table
from submax.strategies import (
    Advantage,
    Clipped,
    Iterated,
    Optimistic,
    SubMax,
    Target,
    Tilted,
)
from submax.testing.strategies import random_table


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (Optimistic(), [0.2, 0.4, 0.4]),
        # (−0.4, 0.1, 0.3) clipped and divided by 0.4
        (SubMax(), [0.0, 0.25, 0.75]),
        # 2 p₁ − p₀ = (−0.2, 0.5, 0.7)
        (Clipped(2.0), [0.0, 5 / 12, 7 / 12]),
        # (p₀ + p₁) / 2
        (Clipped(0.5), [0.4, 0.35, 0.25]),
        (Clipped(0.0), [0.6, 0.3, 0.1]),
        # 0.25 p₀ + 0.75 p₁
        (Target((0.25, 0.75)), [0.3, 0.375, 0.325]),
    ],
    ids=repr,
)
def test_by_hand(small_table, strategy, expected):
    np.testing.assert_allclose(strategy.probabilities(small_table), expected, atol=1e-12)


def test_of_three_levels_optimistic_takes_the_last_and_target_all():
    rows = np.array([[1.0, 0.0], [0.5, 0.5], [0.2, 0.8]])
    table = Table(rows, np.array([0.0, 1.0, 2.0]), np.array([0.5, 0.0, 0.5]), np.zeros(3))
    assert np.allclose(Optimistic().probabilities(table), [0.2, 0.8])
    table = table._replace(prior=np.full(3, 1 / 3))
    assert np.allclose(Target((0.2, 0.3, 0.5)).probabilities(table), [0.45, 0.55])


@pytest.mark.parametrize(
    "distribution",
    [(), (0.5, 0.4), (1.5, -0.5), (float("nan"), 1.0), (True, False), ("0.5", "0.5"), (None, 1)],
)
def test_a_bad_distribution_is_refused(distribution):
    with raises_code("invalid-input"):
        Target(distribution)


@pytest.fixture
def tilted_table(seed):
    rng = np.random.default_rng(seed)
    return Table(
        probabilities=rng.dirichlet(np.ones(5), size=4),
        levels=np.sort(rng.normal(size=4)),
        prior=rng.dirichlet(np.ones(4)),
        values=np.full(4, np.nan),
    )


def test_it_is_the_nearest_distribution_with_its_mean(tilted_table):
    """No change that keeps sum and mean lowers the divergence: it is a minimum, and convex."""
    weights = Tilted(0.7).weights(tilted_table)
    limits = [
        {"type": "eq", "fun": lambda w: w.sum() - 1},
        {"type": "eq", "fun": lambda w: (w - weights) @ tilted_table.levels},
    ]
    best = minimize(
        lambda w: float(np.sum(w * np.log(np.maximum(w, 1e-12) / tilted_table.prior))),
        np.full(4, 0.25),
        bounds=[(1e-12, 1)] * 4,
        constraints=limits,
    )
    divergence = float(np.sum(weights * np.log(weights / tilted_table.prior)))
    assert divergence <= best.fun + 1e-6
    assert weights.sum() == pytest.approx(1)


def test_its_ends_are_the_optimistic_and_the_logging_policy(tilted_table):
    for temperature, same in ((1e-6, Optimistic()), (1e9, Target("observed"))):
        found = Tilted(temperature).probabilities(tilted_table)
        np.testing.assert_allclose(found, same.probabilities(tilted_table), atol=1e-6)


def test_a_level_that_was_never_observed_has_no_weight(tilted_table):
    unseen = tilted_table._replace(prior=np.array([0.5, 0.3, 0.2, 0.0]))
    assert Tilted(0.01).weights(unseen)[3] == 0
    assert np.isfinite(Tilted(1e-9).weights(unseen)).all()


# Advantage


def joint_table(shares, chances, levels):
    """The table of a logging policy p(a) and chances p(l | a), by Bayes: ``[A]``, ``[A, L]``."""
    joint = shares[:, None] * chances
    prior = joint.sum(axis=0)
    return Table(
        probabilities=(joint / np.where(prior > 0, prior, 1.0)).T + (prior == 0)[:, None],
        levels=np.array(levels),
        prior=prior,
        values=np.full(len(prior), np.nan),
    )


def test_with_two_levels_it_is_submax_on_many_tables(seed):
    table = random_table((500,), 6, np.random.default_rng(seed))
    table = table._replace(levels=np.broadcast_to([-3.0, 7.0], (500, 2)))
    np.testing.assert_allclose(
        Advantage().probabilities(table), SubMax().probabilities(table), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("never", [[], [1, 3]], ids=["all observed", "some never"])
def test_the_mixture_is_the_advantage_under_the_logging_policy(never, seed):
    rng, levels = np.random.default_rng(seed), np.array([-1.0, 0.0, 2.0, 10.0])
    for _ in range(50):
        shares, chances = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(4), size=5)
        chances[:, never] = 0.0
        chances /= chances.sum(axis=1, keepdims=True)
        table = joint_table(shares, chances, levels)
        weights = Advantage().weights(table)
        assert not weights[never].any()
        value = chances @ levels
        gain = shares * (value - shares @ value)
        np.testing.assert_allclose(weights @ table.probabilities, gain, rtol=0, atol=1e-12)
        policy = np.maximum(gain, 0) / np.maximum(gain, 0).sum()
        np.testing.assert_allclose(Advantage().probabilities(table), policy, rtol=0, atol=1e-9)


@pytest.mark.parametrize("strategy", [Advantage(), SubMax()], ids=repr)
@pytest.mark.parametrize("levels", [(1.0, 5.0), (1000.0, 1001.0)], ids=str)
def test_it_is_uniform_where_all_rows_agree(levels, strategy, seed):
    rng = np.random.default_rng(seed)
    good = rng.beta(1.0, 20.0, size=(1000, 1))
    rows = rng.dirichlet(np.ones(4), size=(1000, 1)).repeat(2, axis=1)
    prior = np.concatenate([1 - good, good], axis=1)
    table = Table(rows, np.broadcast_to(levels, (1000, 2)), prior, np.full((1000, 2), np.nan))
    assert np.array_equal(strategy.probabilities(table), np.full((1000, 4), 0.25))


# Iterated


def slow(table, depth):
    size = table.probabilities.shape[-1]
    policy, value = [], []
    for action in range(size):
        column = [table.prior[level] * row[action] for level, row in enumerate(table.probabilities)]
        policy.append(sum(column))
        earned = sum(level * part for level, part in zip(table.levels, column, strict=True))
        value.append(earned / sum(column) if sum(column) > 0 else 0.0)
    for _ in range(depth):
        mean = sum(p * v for p, v in zip(policy, value, strict=True))
        mass = [p * max(v - mean, 0.0) for p, v in zip(policy, value, strict=True)]
        if sum(mass) > 1e-12:
            policy = [m / sum(mass) for m in mass]
    return np.array(policy)


@given(data=st.data(), depth=st.integers(1, 4))
def test_it_follows_the_recursion(joint_tables, data, depth):
    table, value = data.draw(joint_tables)
    assume(np.ptp(value) > 0)
    assert np.allclose(Iterated(depth).probabilities(table), slow(table, depth), atol=1e-7)


@given(data=st.data())
def test_one_step_is_submax_on_any_table_of_two_levels(tables, data):
    # π₀ (v − v̄) = prior₀ prior₁ (p₁ − p₀) whatever the rows: π₀ is their mixture.
    table = data.draw(tables)
    assume(np.any(table.probabilities[1] > table.probabilities[0] + 1e-9))
    expected = SubMax().probabilities(table)
    assert np.allclose(Iterated(1).probabilities(table), expected, atol=1e-7)


@pytest.mark.parametrize("lowest", [0.0, -0.3, -1.0, 7.0])
def test_where_no_action_is_better_it_keeps_what_was_played(lowest, seed):
    rng = np.random.default_rng(seed)
    row = rng.dirichlet(np.ones(5), size=100)[:, None, :]
    table = Table(
        probabilities=np.repeat(row, 2, axis=1),
        levels=np.array([lowest, lowest + 1.0]),
        prior=np.tile([0.7, 0.3], (100, 1)),
        values=np.zeros((100, 2)),
    )
    assert np.allclose(Iterated(3).probabilities(table), row[:, 0])
