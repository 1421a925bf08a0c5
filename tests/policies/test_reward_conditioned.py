import numpy as np
import pytest

from submax.core.arms import Arms
from submax.core.errors import InvalidValue
from submax.core.problem import Problem
from submax.core.slots import Slots
from submax.estimators.counting import Counting
from submax.policies.reward_conditioned import RewardConditioned
from submax.strategies.optimistic import Optimistic
from submax.strategies.optimized import Optimized
from submax.strategies.submax import SubMax
from submax.testing.examples import some_feedback


def taught(policy, problem, feedback, seed):
    rng = np.random.default_rng(seed)
    return policy.update(policy.init(problem, feedback.reward.shape[0], rng), feedback, rng)


def test_submax_with_add_one_from_the_raw_observations(seed):
    problem = Problem(Arms(3))
    feedback = some_feedback(problem, 5, 40, seed)
    policy = RewardConditioned(Counting(1.0), SubMax())
    state = taught(policy, problem, feedback, seed)
    found = policy.probabilities(state, np.zeros((5, 1, 0)))[:, 0]
    for replica in range(5):
        arm, reward = feedback.action[replica, :, 0], feedback.reward[replica]
        good, bad = ([1 + np.sum(arm[reward == r] == a) for a in range(3)] for r in (1, 0))
        gain = np.maximum(np.array(good) / sum(good) - np.array(bad) / sum(bad), 0)
        expected = gain / gain.sum() if gain.sum() > 1e-12 else np.full(3, 1 / 3)
        assert np.allclose(found[replica], expected)


def test_it_is_uniform_until_the_first_reward(seed):
    problem = Problem(Slots((2, 2)))
    feedback = some_feedback(problem, 2, 20, seed)._replace(reward=np.zeros((2, 20)))
    for strategy in (Optimistic(), Optimized(), SubMax()):
        policy = RewardConditioned(Counting(1.0), strategy)
        state = taught(policy, problem, feedback, seed)
        assert np.allclose(policy.probabilities(state, np.zeros((2, 1, 0))), 0.25)


def test_values_are_only_computed_where_the_strategy_reads_them(seed):
    problem = Problem(Arms(3))
    feedback = some_feedback(problem, 2, 20, seed)
    context = np.zeros((2, 1, 0))
    plain = RewardConditioned(Counting(), SubMax())
    assert np.all(np.isnan(plain.table(taught(plain, problem, feedback, seed), context).values))
    needy = RewardConditioned(Counting(), Optimized())
    state = taught(needy, problem, feedback, seed)
    expected = Counting().values(state.params)[:, None, :]
    assert np.array_equal(needy.table(state, context).values, expected)


def test_optimized_without_propensities_says_what_is_missing(seed):
    problem = Problem(Arms(3))
    feedback = some_feedback(problem, 1, 20, seed)._replace(log_prob=None, reward=np.ones((1, 20)))
    policy = RewardConditioned(Counting(), Optimized())
    state = taught(policy, problem, feedback, seed)
    with pytest.raises(InvalidValue, match="needs the logged probability of every decision"):
        policy.act(state, np.zeros((1, 1, 0)), np.random.default_rng(seed))


def test_a_space_that_is_too_large_is_refused(seed):
    with pytest.raises(InvalidValue, match="the reward-conditioned policy keeps a number"):
        RewardConditioned().init(Problem(Slots((2000, 2000))), 1, np.random.default_rng(seed))
