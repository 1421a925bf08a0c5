import numpy as np
import pytest
from refusals import raises_code
from scipy import stats

from submax.core.contracts.problem import Problem
from submax.core.rewards.continuous import Continuous
from submax.core.spaces.arms import Arms
from submax.environments.arms.gaussian import Gaussian

WORLD = np.array([[0.1, -0.5, 2.0], [-3.0, -2.0, -1.0]])


def test_the_problem_is_arms_with_any_number():
    assert Gaussian(3).problem == Problem(Arms(3), 0, Continuous())


def test_means_and_best_by_hand():
    environment = Gaussian(3)
    context = np.zeros((2, 2, 0))
    action = np.array([[0, 2], [1, 0]])[..., None]
    assert environment.mean_reward(WORLD, context, action).tolist() == [[0.1, 2.0], [-2.0, -3.0]]
    assert environment.best_reward(WORLD, context).tolist() == [[2.0, 2.0], [-1.0, -1.0]]


def test_means_have_the_prior_distribution(seed):
    world = Gaussian(50, spread=3.0).reset(200, np.random.default_rng(seed))
    assert world.shape == (200, 50)
    assert stats.kstest(world.ravel(), stats.norm(0, 3.0).cdf).pvalue > 1e-6


def test_rewards_are_normal_around_the_mean(seed):
    action = np.full((2, 5000, 1), 1)
    rng = np.random.default_rng(seed)
    reward = Gaussian(3, noise=0.7).reward(WORLD, np.zeros((2, 5000, 0)), action, rng)
    for drawn, mean in zip(reward, WORLD[:, 1], strict=True):
        assert stats.kstest(drawn, stats.norm(mean, 0.7).cdf).pvalue > 1e-6


def test_without_noise_the_reward_is_the_mean(seed):
    rng = np.random.default_rng(seed)
    action = rng.integers(3, size=(2, 9, 1))
    outcome = Gaussian(3, noise=0.0).outcome(WORLD, np.zeros((2, 9, 0)), action, rng)
    assert np.array_equal(outcome.reward, outcome.mean)


@pytest.mark.parametrize("arms", [0, -3, 2.0, True, "3", None])
def test_a_bad_number_of_arms_is_refused(arms):
    with raises_code("invalid-input"):
        Gaussian(arms)


@pytest.mark.parametrize("name", ["spread", "noise"])
@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf"), True, "1", None])
def test_a_bad_spread_or_noise_is_refused(name, value):
    with raises_code("invalid-input"):
        Gaussian(3, **{name: value})


def test_arms_that_are_all_alike_are_refused():
    with raises_code("invalid-input", "spread"):
        Gaussian(3, spread=0.0)
