import numpy as np
import pytest
from refusals import raises_code
from scipy import stats

from submax.core.contracts.problem import Problem
from submax.core.spaces.arms import Arms
from submax.environments.changing.drifting_bernoulli import DriftingBernoulli, DriftingProbabilities


def test_the_problem_is_plain_arms():
    assert DriftingBernoulli(7).problem == Problem(Arms(7))


def test_means_and_best_by_hand():
    environment = DriftingBernoulli(3)
    chance = np.array([[0.1, 0.5, 0.9], [0.8, 0.2, 0.0]])
    world = DriftingProbabilities(np.zeros((2, 3)), chance)
    context = np.zeros((2, 2, 0))
    action = np.array([[0, 2], [1, 0]])[..., None]
    assert environment.mean_reward(world, context, action).tolist() == [[0.1, 0.9], [0.2, 0.8]]
    assert environment.best_reward(world, context).tolist() == [[0.9, 0.9], [0.8, 0.8]]


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (1.0, 9.0), (1.0, 99.0), (0.5, 2.0)])
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


def test_advancing_by_nothing_changes_nothing(seed):
    environment = DriftingBernoulli(3, 2.0, 3.0)
    rng = np.random.default_rng(seed)
    world = environment.reset(4, rng)
    same = environment.advance(world, 0, rng)
    assert np.array_equal(same.path, world.path)
    assert np.array_equal(same.probability, world.probability)


def test_advancing_leaves_the_old_world_as_it_was(seed):
    environment = DriftingBernoulli(3, memory=1.0)
    rng = np.random.default_rng(seed)
    world = environment.reset(4, rng)
    before = world.probability.copy()
    assert np.all(environment.advance(world, 10, rng).probability != before)
    assert np.array_equal(world.probability, before)


@pytest.mark.parametrize("arms", [0, -3, 2.0, True, "3", None])
def test_a_bad_number_of_arms_is_refused(arms):
    with raises_code("invalid-input", "arms"):
        DriftingBernoulli(arms)


@pytest.mark.parametrize("name", ["alpha", "beta", "memory"])
@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), True, "1", None])
def test_a_bad_number_is_refused(name, value):
    with raises_code("invalid-input"):
        DriftingBernoulli(3, **{name: value})
