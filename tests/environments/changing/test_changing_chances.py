"""Chances that drift, switch or retire as decisions are taken."""

import numpy as np
import pytest
from scipy import stats

from submax import DriftingBernoulli, RetiringBernoulli, SwitchingBernoulli


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (1.0, 99.0), (0.5, 2.0)])
def test_chances_have_the_same_distribution_at_all_times(alpha, beta, seed):
    environment = DriftingBernoulli(50, alpha, beta, memory=10.0)
    rng = np.random.default_rng(seed)
    world = environment.reset(200, rng)
    for count in (0, 1, 5, 5, 100):
        world = environment.advance(world, count, rng)
        assert stats.kstest(world.probability.ravel(), stats.beta(alpha, beta).cdf).pvalue > 1e-6


def test_a_chance_is_the_quantile_of_its_path(seed):
    environment = DriftingBernoulli(20, 2.0, 5.0)
    world = environment.reset(3, np.random.default_rng(seed))
    expected = stats.beta(2.0, 5.0).ppf(stats.norm.cdf(world.path))
    assert np.allclose(world.probability, expected, rtol=1e-9)


@pytest.mark.parametrize("moves", [(6,), (2, 4), (1, 1, 1, 1, 1, 1)])
def test_correlation_with_the_past_falls_with_the_number_of_decisions(moves, seed):
    """However the six decisions are parted; memory 10 leaves exp(−0.6)."""
    environment = DriftingBernoulli(100, memory=10.0)
    rng = np.random.default_rng(seed)
    start = environment.reset(500, rng)
    world = start
    for count in moves:
        world = environment.advance(world, count, rng)
    product = start.path * world.path
    # Two standard normals with correlation ρ: the variance of their product is 1 + ρ².
    kept = np.exp(-0.6)
    error = np.sqrt((1 + kept**2) / product.size)
    assert abs(product.mean() - kept) < 6 * error


def test_advancing_changes_the_new_world_alone_and_by_nothing_not_at_all(seed):
    environment = DriftingBernoulli(3, 2.0, 3.0, memory=1.0)
    rng = np.random.default_rng(seed)
    world = environment.reset(4, rng)
    before = world.probability.copy()
    assert np.array_equal(environment.advance(world, 0, rng).probability, before)
    assert np.all(environment.advance(world, 10, rng).probability != before)
    assert np.array_equal(world.probability, before)


def test_probabilities_switch_after_every_period_and_only_then(seed):
    environment, rng = SwitchingBernoulli(3, period=4), np.random.default_rng(seed)
    world, seen = environment.reset(2, rng), []
    for _ in range(12):
        seen.append(world.probability)
        world = environment.advance(world, 1, rng)
    changed = [not np.array_equal(seen[t], seen[t - 1]) for t in range(1, 12)]
    assert [t for t in range(1, 12) if changed[t - 1]] == [4, 8]


@pytest.mark.parametrize(
    "environment", [SwitchingBernoulli(3, period=4), RetiringBernoulli(3, lifetime=5.0)]
)
def test_a_long_step_is_many_short_ones(environment, seed):
    rngs = [np.random.default_rng(seed) for _ in range(2)]
    long, short = (environment.reset(2, rng) for rng in rngs)
    long = environment.advance(long, 9, rngs[0])
    for _ in range(9):
        short = environment.advance(short, 1, rngs[1])
    assert np.array_equal(environment.arm_means(long), environment.arm_means(short))


def test_an_arm_is_there_for_its_lifetime_on_average(seed):
    """After n decisions an arm is still there with probability (1 − 1/L)^n."""
    lifetime, decisions, arms = 20.0, 15, 20000
    environment, rng = RetiringBernoulli(arms, lifetime), np.random.default_rng(seed)
    world = environment.reset(1, rng)
    later = environment.advance(world, decisions, rng)
    expected = (1 - 1 / lifetime) ** decisions
    error = np.sqrt(expected * (1 - expected) / arms)
    assert abs((later == world).mean() - expected) < 5 * error
