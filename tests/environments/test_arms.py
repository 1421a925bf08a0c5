"""Arms without context: their priors, the distributions of rewards, and given means."""

import itertools
import math
from dataclasses import asdict

import numpy as np
import pytest
from scipy import stats

from submax import (
    Bernoulli,
    DriftingBernoulli,
    Gaussian,
    LogisticContextual,
    Poisson,
    Ratings,
    make_policy,
    simulate,
)
from submax.environments.contextual import DriftingContextual
from submax.research import Cascade, Dueling
from submax.research.beyond.duels import preferences_of
from submax.simulation.delays import BatchedRewards, Lag

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
        # Each coordinate of Dirichlet(κ, …, κ) in V dimensions is Beta(κ, (V − 1) κ).
        *((Ratings(50, VALUES, kappa), stats.beta(kappa, 2 * kappa)) for kappa in (0.3, 1.0, 7.0)),
    ],
)
def test_means_have_the_prior_distribution(environment, prior, seed):
    world = environment.reset(200, np.random.default_rng(seed)).reshape(200, 50, -1)
    for part in np.moveaxis(world, -1, 0):
        assert stats.kstest(part.ravel(), prior.cdf).pvalue > 1e-6
        assert abs(part.mean() - prior.mean()) < 6 * prior.std() / np.sqrt(part.size)
    assert world.shape[2] == 1 or np.allclose(world.sum(axis=-1), 1.0, rtol=0, atol=1e-12)


def test_rewards_have_their_distribution_around_the_mean(seed):
    environment = Gaussian.of([-0.5, 2.0], 0.7)
    world = environment.reset(2, np.random.default_rng(seed))
    for rewards in drawn(environment, world, 1, 5000, seed):
        assert stats.kstest(rewards, stats.norm(2.0, 0.7).cdf).pvalue > 1e-6


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


# Chances that drift, switch or retire as decisions are taken


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (1.0, 99.0), (0.5, 2.0)])
def test_a_chance_is_the_quantile_of_its_path_at_all_times(alpha, beta, seed):
    environment, rng = DriftingBernoulli(20, alpha, beta, memory=10.0), np.random.default_rng(seed)
    world = environment.reset(3, rng)
    for count in (0, 1, 5, 100):
        world = environment.advance(world, count, rng)
        expected = stats.beta(alpha, beta).ppf(stats.norm.cdf(world.path))
        np.testing.assert_allclose(world.probability, expected, rtol=1e-9)


def test_logistic_means_are_the_equation_and_products_have_the_spread(seed):
    environment, rng = LogisticContextual(3, 7, shift=-1.0, spread=3.0), np.random.default_rng(seed)
    world = environment.reset(20000, rng)
    context = environment.contexts(world, 1, rng)
    product = np.einsum("rkd,rnd->rnk", world, context)
    expected = 1 / (1 + np.exp(1 - product))
    for arm in range(3):
        mean = environment.mean_reward(world, context, np.full((20000, 1, 1), arm))
        np.testing.assert_allclose(mean, expected[..., arm])
    # A product of normal vectors has a kurtosis of at most 9, so the variance's error is √(8 / n).
    assert abs(product[..., 0].var() / 9.0 - 1) < 5 * np.sqrt(8 / 20000)


# The truth of a drifting environment depends on the seed, not on the policy or the delay

DECISIONS, REPLICAS = 60, 3
DELAYS = (BatchedRewards(1), BatchedRewards(1000), BatchedRewards(7), Lag(0), Lag(5))


def met(inner, policy, delay, seed):
    """The truth at every decision and all contexts, noted when the best reward is asked for."""
    states, contexts, kind = [], [], type(inner)

    def noted(self, world, context):
        states.append(np.concatenate([part.ravel() for part in world]))
        contexts.append(context.copy())
        return kind.best_reward(self, world, context)

    watched = type("Watched", (kind,), {"best_reward": noted})(**asdict(inner))
    settings = {"observations": DECISIONS, "replicas": REPLICAS, "seed": seed, "points": None}
    simulate(watched, make_policy(policy), delay=delay, **settings)
    return np.stack(states), np.concatenate(contexts, axis=1)


@pytest.mark.filterwarnings("ignore::submax.ContextIgnoredWarning")
@pytest.mark.parametrize(
    "inner", [DriftingBernoulli(4, memory=50.0), DriftingContextual(3, 2, hidden=4, memory=50.0)]
)
def test_states_and_contexts_are_those_of_the_seed_for_every_policy_and_delay(inner, seed):
    states, contexts = met(inner, "random", BatchedRewards(1), seed)
    assert len(states) == DECISIONS
    assert len(np.unique(states, axis=0)) == DECISIONS, "the truth moves with every decision"
    for delay in DELAYS:
        again, contexts_again = met(inner, "ucb1", delay, seed)
        assert np.array_equal(again, states)
        assert np.array_equal(contexts_again, contexts)


# The environment `Dueling`: preferences, and regret that is not measured by rewards

ORDERED = ((0.5, 0.6, 0.9), (0.4, 0.5, 0.7), (0.1, 0.3, 0.5))


def test_the_regret_of_a_pair_is_that_of_its_arms():
    duels = Dueling(preferences=ORDERED)
    world, pairs = duels.reset(2, np.random.default_rng(0)), duels.problem.space.listing()
    found = duels.regret(world, np.zeros((2, 9, 0)), np.tile(pairs, (2, 1, 1)))
    lost = [ORDERED[0][i] - 0.5 for i in range(3)]
    expected = [(lost[i] + lost[j]) / 2 for i, j in itertools.product(range(3), repeat=2)]
    np.testing.assert_allclose(found, [expected] * 2, atol=1e-12)


def test_preferences_follow_from_utilities():
    utilities = (1.0, -0.5, 800.0)
    found = preferences_of(np.array(utilities))
    for i, j in itertools.product(range(3), repeat=2):
        ahead = utilities[i] - utilities[j]
        expected = 1 / (1 + math.exp(-ahead)) if ahead > -700 else 0.0
        assert found[i, j] == pytest.approx(expected, abs=1e-12)


# The means of slates, compared with a sum over all ways to click

ITEMS, POSITIONS = 4, 3


def cascade_mean(world, slate):
    """Someone looks on until the first click; an item that is shown again attracts nobody."""
    total, reached = 0.0, 1.0
    for position, item in enumerate(slate):
        attraction = 0.0 if item in slate[:position] else world[item]
        total += reached * attraction * (POSITIONS - position) / POSITIONS
        reached *= 1 - attraction
    return total


def test_every_slate_has_the_mean_of_its_model(seed):
    environment, rng = Cascade(ITEMS, POSITIONS), np.random.default_rng(seed)
    world = environment.reset(2, rng)
    slates = environment.problem.space.listing()
    context = np.zeros((2, len(slates), 0))
    found = environment.mean_reward(world, context, np.tile(slates, (2, 1, 1)))
    expected = [[cascade_mean(row, slate.tolist()) for slate in slates] for row in world]
    np.testing.assert_allclose(found, expected)
