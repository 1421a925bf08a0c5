"""A policy decides among the eligible actions as if there were no others."""

import numpy as np
import pytest
from observations import listed, observed, taught

from submax import Arms, BatchedRewards, Problem, Slots, make_policy, simulate
from submax.core.policy import probabilities_among
from submax.environments import SleepingBernoulli

COUNTING = (
    "ucb1", "kl-ucb", "imed", "moss", "bayes-ucb-1-9", "thompson-1-1", "epsilon-greedy-0.1",
    "posterior-greedy-1-9", "rcp-submax", "rcp-optimistic", "rcp-iterated-2",
    "top-two-thompson", "track-and-stop", "random",
)  # fmt: skip
"""Policies that learn about each action from its own rows."""
LEARNING = (
    "rcp-adaptive", "rcp-submax", "rcp-optimistic", "rcp-optimized", "thompson-1-1", "ucb1",
    "kl-ucb", "bayes-ucb-1-9", "epsilon-greedy-0.1", "linucb", "linear-thompson",
    "posterior-submax", "information-directed-1-9", "discounted-thompson",
    "hill-climbing-thompson",
)  # fmt: skip
KEPT = (0, 2, 3)


def feedback(action, chances, rng):
    """Rows of uniformly chosen actions ``[1, n, S]`` with these chances of reward 1."""
    joint = np.prod(action.max(axis=(0, 1)) + 1)
    return observed(action, rng.random(chances.shape) < chances, log_prob=-np.log(joint))


@pytest.mark.parametrize("name", COUNTING)
def test_it_decides_as_a_policy_that_never_met_the_other_actions(name, seed):
    policy, problem = make_policy(name), Problem(Arms(5))
    rng = np.random.default_rng(seed)
    action = rng.integers(5, size=(1, 60, 1))
    rows = feedback(action, np.linspace(0.1, 0.7, 5)[action[..., 0]], rng)
    own = np.isin(rows.action[0, :, 0], KEPT)
    alone = rows._replace(action=np.searchsorted(KEPT, rows.action)).rows(own)
    expected = listed(policy, taught(policy, Problem(Arms(3)), alone))
    whole = taught(policy, problem, rows)
    found = probabilities_among(policy, whole, np.zeros((1, 1, 0)), (KEPT,))
    np.testing.assert_allclose(found[:, 0], expected, atol=1e-9)


@pytest.mark.parametrize("name", LEARNING)
def test_the_second_best_arm_is_found_where_the_best_is_not_eligible(name, seed):
    """Three arms earn .05, .5 and .9; every third decision has only the first two."""
    environment = SleepingBernoulli(((0, 1, 2), (0, 1, 2), (0, 1)), means=(0.05, 0.5, 0.9))
    settings = {"observations": 1800, "replicas": 5, "seed": seed, "points": None}
    trace = simulate(environment, make_policy(name), delay=BatchedRewards(30), **settings)
    restricted = trace.actions[:, 902::3, 0]
    assert set(np.unique(restricted)) <= {0, 1}
    shares = (restricted == 1).mean(axis=1)
    # ε-greedy and UCB1 take the other arm in 5 of 100 decisions forever or for long.
    error = max(shares.std(ddof=1), 0.01) / np.sqrt(len(shares))
    assert shares.mean() > 0.95 - 4 * error


@pytest.mark.parametrize("name", ["posterior-slots", "rcp-submax", "linucb"])
def test_slots_are_restricted_one_by_one(name, seed):
    policy, problem = make_policy(name), Problem(Slots((3, 4)))
    rng = np.random.default_rng(seed)
    action = np.stack([rng.integers(3, size=2000), rng.integers(4, size=2000)], axis=-1)[None]
    # The best joint action is (2, 3); of those that are left, (1, 1) is the best, by 0.3 or more.
    # With 167 rows of each that is 5.7 standard errors of the difference of two means.
    chances = 0.05 + 0.35 * (action == [2, 3]).sum(axis=-1) + 0.3 * (action == 1).sum(axis=-1)
    state = taught(policy, problem, feedback(action, chances, rng), seed)
    choices = ((0, 1), (0, 1, 2))
    found = probabilities_among(policy, state, np.zeros((1, 1, 0)), choices)[0, 0].reshape(2, 3)
    assert found.sum() == pytest.approx(1)
    assert found[1, 1] == found.max() > 0.2
