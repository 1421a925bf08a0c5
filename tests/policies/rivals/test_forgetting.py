"""Policies that forget, compared with sums over the whole history."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from submax import (
    Arms,
    BatchedRewards,
    Feedback,
    Memory,
    Problem,
    SwitchingBernoulli,
    make_policy,
    simulate,
)
from submax.policies import Thompson

ARMS, ROWS = 3, 25
PROBLEM = Problem(Arms(ARMS))


def history(seed):
    rng = np.random.default_rng(seed)
    arms = np.concatenate([np.arange(ARMS), rng.integers(ARMS, size=ROWS - ARMS)])
    return arms, rng.integers(2, size=ROWS).astype(float)


def taught(policy, arms, rewards, blocks):
    rng = np.random.default_rng(0)
    state = policy.init(PROBLEM, 1, rng)
    for part in np.array_split(np.arange(len(arms)), blocks):
        nowhere, weight = np.zeros((1, len(part), 0)), np.ones((1, len(part)))
        feedback = Feedback(nowhere, arms[None, part, None], rewards[None, part], None, weight)
        state = policy.update(state, feedback, rng)
    return policy.probabilities(state, np.zeros((1, 1, 0)))[0, 0]


def weights_of(policy):
    """The weight of every row, counted from the first."""
    ages = np.arange(ROWS)[::-1]
    if policy.memory.window is None:
        return policy.memory.discount**ages
    return (ages < policy.memory.window).astype(float)


@pytest.mark.parametrize("memory", [Memory(discount=0.9), Memory(window=10)])
@pytest.mark.parametrize("blocks", [1, 4])
def test_chances_are_those_of_weighted_beta_posteriors(memory, blocks, seed):
    policy = Thompson(memory=memory)
    arms, rewards = history(seed)
    weight = weights_of(policy)
    posteriors = []
    for arm in range(ARMS):
        successes = (weight * rewards)[arms == arm].sum()
        failures = (weight * (1 - rewards))[arms == arm].sum()
        posteriors.append(stats.beta(1 + successes, 1 + failures))
    found = taught(policy, arms, rewards, blocks)
    for arm, own in enumerate(posteriors):
        others = [one for place, one in enumerate(posteriors) if place != arm]
        expected, _ = integrate.quad(
            lambda x, own=own, others=others: own.pdf(x) * others[0].cdf(x) * others[1].cdf(x), 0, 1
        )
        assert found[arm] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("forgetting", "counting"),
    [("discounted-thompson", "thompson-1-1"), ("sliding-window-thompson", "thompson-1-1")],
)
def test_forgetting_pays_after_abrupt_changes(forgetting, counting, seed):
    """The difference of paired regrets is more than four standard errors."""
    environment = SwitchingBernoulli(5, period=500)
    tables = {
        "discounted-thompson": {"kind": "thompson", "memory": {"discount": 0.98}},
        "sliding-window-thompson": {"kind": "thompson", "memory": {"window": 100}},
        "thompson-1-1": "thompson-1-1",
    }
    regrets = [
        simulate(
            environment,
            make_policy(tables[name]),
            observations=2500,
            replicas=40,
            delay=BatchedRewards(25),
            seed=seed,
        ).final_regret
        for name in (forgetting, counting)
    ]
    difference = regrets[1] - regrets[0]
    assert difference.mean() > 4 * difference.std(ddof=1) / math.sqrt(40)
