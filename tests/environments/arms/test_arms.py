"""Arms without context: their priors, the distributions of rewards, and given means."""

import numpy as np
import pytest
from scipy import stats

from submax import Bernoulli, Gaussian, HeavyTailed, Poisson, Ratings, make_policy, simulate
from submax.environments.arms import SparseBernoulli
from submax.simulation.experiment import cells, parse

TOML = """
observations = 10
policies = ["random"]
[environment]
kind = "{kind}"
means = {means}
"""
VALUES = (-1.0, 0.0, 4.0)


def drawn(environment, world, arm, draws, seed):
    """Rewards of one arm, ``[R, draws]``."""
    replicas, rng = len(world), np.random.default_rng(seed)
    context = np.zeros((replicas, draws, 0))
    return environment.reward(world, context, np.full((replicas, draws, 1), arm), rng)


@pytest.mark.parametrize(
    ("environment", "prior"),
    [
        (Bernoulli(50), stats.uniform()),
        (Bernoulli(50, 1.0, 99.0), stats.beta(1.0, 99.0)),
        (Bernoulli(50, 0.5, 2.0), stats.beta(0.5, 2.0)),
        (Gaussian(50, spread=3.0), stats.norm(0, 3.0)),
        (Poisson(50, 2.0, 1.0), stats.gamma(2.0, scale=0.5)),
        (Poisson(50, 0.5, 10.0), stats.gamma(0.5, scale=20.0)),
        (Poisson(50, 20.0, 3.0), stats.gamma(20.0, scale=0.15)),
    ],
)
def test_means_have_the_prior_distribution(environment, prior, seed):
    world = environment.reset(200, np.random.default_rng(seed))
    assert world.shape == (200, 50)
    assert stats.kstest(world.ravel(), prior.cdf).pvalue > 1e-6
    assert abs(world.mean() - prior.mean()) < 6 * prior.std() / np.sqrt(world.size)


@pytest.mark.parametrize("concentration", [0.3, 1.0, 7.0])
def test_the_chances_of_a_rating_are_those_of_a_symmetric_dirichlet(concentration, seed):
    """Each coordinate of Dirichlet(κ, …, κ) in V dimensions is Beta(κ, (V − 1) κ)."""
    environment = Ratings(50, VALUES, concentration)
    world = environment.reset(200, np.random.default_rng(seed))
    assert world.shape == (200, 50, 3)
    assert np.allclose(world.sum(axis=-1), 1.0, rtol=0, atol=1e-12)
    prior = stats.beta(concentration, 2 * concentration)
    for value in range(3):
        assert stats.kstest(world[..., value].ravel(), prior.cdf).pvalue > 1e-6


@pytest.mark.parametrize("kind", [Bernoulli, Gaussian, Poisson])
def test_means_and_best_by_hand(kind):
    environment, context = kind(3), np.zeros((2, 2, 0))
    world = np.array([[0.1, 0.5, 0.9], [0.8, 0.2, 0.0]])
    action = np.array([[0, 2], [1, 0]])[..., None]
    assert environment.mean_reward(world, context, action).tolist() == [[0.1, 0.9], [0.2, 0.8]]
    assert environment.best_reward(world, context).tolist() == [[0.9, 0.9], [0.8, 0.8]]


def test_certain_arms_never_and_always_pay(seed):
    world = np.array([[0.0, 1.0]])
    for arm in (0, 1):
        assert np.all(drawn(Bernoulli(2), world, arm, 500, seed) == arm)


@pytest.mark.parametrize(
    ("environment", "law"),
    [
        (Gaussian.of([-0.5, 2.0], 0.7), stats.norm(2.0, 0.7)),
        (HeavyTailed(means=(1.0, 5.0), degrees=1.5, noise=2.0), stats.t(1.5, 5.0, 2.0)),
        (HeavyTailed(means=(1.0, 5.0), degrees=3.0, noise=2.0), stats.t(3.0, 5.0, 2.0)),
    ],
)
def test_rewards_have_their_distribution_around_the_mean(environment, law, seed):
    world = environment.reset(2, np.random.default_rng(seed))
    for rewards in drawn(environment, world, 1, 5000, seed):
        assert stats.kstest(rewards, law.cdf).pvalue > 1e-6


@pytest.mark.parametrize("arm", [0, 1, 2])
def test_counts_come_as_often_as_the_poisson_law_says(arm, seed):
    world, draws = np.array([[0.0, 0.5, 2.0], [3.0, 0.1, 7.0]]), 20_000
    rewards = drawn(Poisson(3), world, arm, draws, seed)
    for counts, rate in zip(rewards, world[:, arm], strict=True):
        for count in range(12):
            chance = stats.poisson(rate).pmf(count)
            # The last term is Bernstein's, for counts that hardly ever come.
            allowed = 6 * np.sqrt(chance * (1 - chance) / draws) + 12 / draws
            assert abs(np.mean(counts == count) - chance) <= allowed


def test_ratings_come_as_often_as_their_chances_say_and_have_their_mean(seed):
    chances = np.array([[[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]], [[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]]])
    environment, draws, context = Ratings(2, VALUES), 20_000, np.zeros((2, 2, 0))
    for arm in range(2):
        rewards = drawn(environment, chances, arm, draws, seed)
        for replica, value in np.ndindex(2, 3):
            chance = chances[replica, arm, value]
            found = np.mean(rewards[replica] == VALUES[value])
            assert abs(found - chance) <= 6 * np.sqrt(chance * (1 - chance) / draws)
    mean = environment.mean_reward(chances, context, np.array([[0, 1], [1, 0]])[..., None])
    assert np.allclose(mean, [[-0.5, 4.0], [-1.0, 1.8]], rtol=0, atol=1e-12)
    assert np.allclose(environment.best_reward(chances, context), [[4.0, 4.0], [1.8, 1.8]])


def test_so_many_arms_are_good_and_any_may_be(seed):
    chances = SparseBernoulli(6, good=2, high=0.4, low=0.1).reset(2000, np.random.default_rng(seed))
    good = chances == 0.4
    assert (good.sum(axis=1) == 2).all()
    assert (chances[~good] == 0.1).all()
    # Each arm is good with probability 1/3; six arms, five standard errors.
    assert np.abs(good.mean(axis=0) - 1 / 3).max() < 5 * np.sqrt(2 / 9 / 2000)


@pytest.mark.parametrize("environment", [Bernoulli.of([0.9, 0.5]), Gaussian.of([0.9, 0.5], 0.0)])
def test_regret_is_the_distance_of_the_given_means(environment):
    trace = simulate(environment, make_policy("random"), observations=50, replicas=4, points=None)
    worse = (trace.actions[..., 0] == 1).cumsum(axis=1)
    np.testing.assert_allclose(trace.accumulated_regret, 0.4 * worse, atol=1e-12)
    assert environment.shared


def test_rewards_without_noise_are_the_given_means():
    environment = Gaussian.of([2.0, -1.0], noise=0.0)
    trace = simulate(environment, make_policy("random"), observations=30, replicas=3, points=None)
    assert np.array_equal(trace.rewards, np.array([2.0, -1.0])[trace.actions[..., 0]])


@pytest.mark.parametrize("kind", ["bernoulli", "gaussian", "heavy-tailed"])
def test_a_list_of_means_in_toml_is_one_configuration(kind):
    (cell,) = cells(parse(TOML.format(kind=kind, means="[0.9, 0.8, 0.7]"), "given"))
    assert cell.labels["arms"] == 3
    assert cell.labels["means"] == "0.9x0.8x0.7"
    several = cells(parse(TOML.format(kind=kind, means="[[0.9, 0.8], [0.5, 0.4]]"), "given"))
    assert [cell.labels["means"] for cell in several] == ["0.9x0.8", "0.5x0.4"]
