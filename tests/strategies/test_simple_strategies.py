"""Strategies of one line, by hand and by their limits."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from refusals import raises_code
from scipy.optimize import minimize

from submax import Table
from submax.strategies import Clipped, Optimistic, Optimized, SubMax, Target, Tilted
from submax.strategies.weighted import bounds


def test_it_is_the_row_of_the_highest_level(small_table):
    assert np.allclose(Optimistic().probabilities(small_table), [0.2, 0.4, 0.4])


def test_levels_between_do_not_count():
    rows = np.array([[1.0, 0.0], [0.5, 0.5], [0.3, 0.7]])
    table = Table(rows, np.array([0.0, 1.0, 2.0]), np.array([0.5, 0.0, 0.5]), np.zeros(3))
    assert np.allclose(Optimistic().probabilities(table), [0.3, 0.7])


def test_submax_by_hand(small_table):
    # (−0.4, 0.1, 0.3) clipped and divided by 0.4
    assert np.allclose(SubMax().probabilities(small_table), [0.0, 0.25, 0.75])


def test_it_is_uniform_where_both_rows_agree(small_table):
    same = small_table._replace(probabilities=np.array([[0.6, 0.3, 0.1]] * 2))
    assert np.allclose(SubMax().probabilities(same), 1 / 3)


@given(data=st.data())
def test_it_is_one_step_of_improvement_by_positive_advantage(joint_tables, data):
    table, logging, value = data.draw(joint_tables)
    mean = logging @ value
    difference = table.probabilities[1] - table.probabilities[0]
    assert np.allclose(difference, logging * (value - mean) / (mean * (1 - mean)))
    gain = logging * np.maximum(value - mean, 0)
    assume(gain.sum() > 1e-9)
    assert np.allclose(SubMax().probabilities(table), gain / gain.sum(), atol=1e-6)


def test_clipped_by_hand(small_table):
    # 2 p₁ − p₀ = (−0.2, 0.5, 0.7)
    assert np.allclose(Clipped(2.0).probabilities(small_table), [0.0, 5 / 12, 7 / 12])
    # (p₀ + p₁) / 2
    assert np.allclose(Clipped(0.5).probabilities(small_table), [0.4, 0.35, 0.25])
    assert np.allclose(Clipped(0.0).probabilities(small_table), [0.6, 0.3, 0.1])


@given(data=st.data())
def test_clipped_at_one_is_optimistic(tables, data):
    table = data.draw(tables)
    assert np.allclose(Clipped(1.0).probabilities(table), Optimistic().probabilities(table))


@given(data=st.data(), power=st.integers(3, 9))
def test_the_limit_of_clipped_is_submax(tables, data, power):
    table = data.draw(tables)
    gained = np.maximum(table.probabilities[1] - table.probabilities[0], 0).sum()
    assume(gained > 0.01)
    weight = 10.0**power
    distance = np.abs(Clipped(weight).probabilities(table) - SubMax().probabilities(table)).sum()
    # What λ (p₁ − p₀) + p₀ has beside the first part is one in all, against λ times the gain.
    assert distance <= 2 / (weight * gained) + 1e-12


@given(data=st.data())
def test_at_the_highest_bound_it_is_optimized_and_clips_nothing(tables, data):
    table = data.draw(tables)
    low, high = table.probabilities
    highest = float(bounds(low, high).highest)
    assert np.allclose(
        Clipped(highest).probabilities(table), Optimized().probabilities(table), atol=1e-9
    )
    assert np.min((1 - highest) * low + highest * high) > -1e-12


def test_target_by_hand(small_table):
    # 0.25 p₀ + 0.75 p₁
    found = Target((0.25, 0.75)).probabilities(small_table)
    assert np.allclose(found, [0.3, 0.375, 0.325])
    rows = np.array([[1.0, 0.0], [0.5, 0.5], [0.2, 0.8]])
    table = Table(rows, np.array([0.0, 1.0, 2.0]), np.full(3, 1 / 3), np.zeros(3))
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


def test_the_unit_of_rewards_does_not_matter(tilted_table):
    larger = tilted_table._replace(levels=1000 * tilted_table.levels + 5)
    np.testing.assert_allclose(Tilted(0.3).weights(larger), Tilted(0.3).weights(tilted_table))
