"""What the paper reports, at a size that leaves no doubt: differences of many standard errors."""

import itertools

import numpy as np
import pytest

from submax.core.conditioning import Table
from submax.environments.arms import Bernoulli
from submax.estimators import Counting
from submax.policies import RewardConditioned, make_policy
from submax.simulation.delays import BatchedRewards
from submax.simulation.simulate import simulate
from submax.strategies.weighted import Optimistic, Optimized, SubMax, Target

CLEAR = 5.0
"""Standard errors: one false alarm in three million comparisons."""


def standard_errors(difference):
    return difference.mean() / (difference.std(ddof=1) / np.sqrt(len(difference)))


def add_one(strategy):
    return RewardConditioned(Counting(1.0), strategy)


def final_regret(environment, policy, observations, batch, replicas, seed):
    settings = {"observations": observations, "replicas": replicas, "seed": seed, "points": 1}
    return simulate(environment, policy, delay=BatchedRewards(batch), **settings).final_regret


def test_submax_regrets_less_than_optimized_less_than_optimistic_less_than_random(seed):
    policies = (*map(add_one, (SubMax(), Optimized(), Optimistic())), make_policy("random"))
    world = Bernoulli(50, 1.0, 9.0)
    regrets = [final_regret(world, policy, 3000, 100, 100, seed) for policy in policies]
    for better, worse in itertools.pairwise(regrets):
        assert standard_errors(worse - better) > CLEAR


def test_the_expected_rewards_of_the_illustration_are_in_order(seed):
    value = np.random.default_rng(seed).beta(1, 9, size=(400, 20))
    mean = value.mean(axis=1, keepdims=True)
    rows = np.stack([(1 - value) / (1 - mean), value / mean], axis=1) / 20
    table = Table(
        probabilities=rows,
        levels=np.array([0.0, 1.0]),
        prior=np.concatenate([1 - mean, mean], axis=1),
        values=np.einsum("rla,ra->rl", rows, value),
    )
    earned = {
        strategy: np.sum(strategy.probabilities(table) * value, axis=1)
        for strategy in (Target((1.0, 0.0)), Optimistic(), Optimized(), SubMax())
    }
    negative, optimistic, optimized, submax = earned.values()
    assert np.all(negative < mean[:, 0])
    assert np.all(mean[:, 0] < optimistic)
    assert np.all(optimistic <= optimized + 1e-12)
    assert standard_errors(submax - optimized) > CLEAR


@pytest.mark.parametrize("arms", [2, 10])
def test_the_regret_of_random_choice_has_a_closed_form(arms, seed):
    regret = final_regret(Bernoulli(arms), make_policy("random"), 200, 200, 500, seed)
    # The largest of K uniform numbers is K / (K + 1) on average, each of them 1 / 2.
    expected = 200 * (arms / (arms + 1) - 0.5)
    assert abs(standard_errors(regret - expected)) < CLEAR
