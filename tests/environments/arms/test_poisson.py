import numpy as np
import pytest
from refusals import raises_code
from scipy import stats

from submax.core.contracts.problem import Problem
from submax.core.rewards.counts import Counts
from submax.core.spaces.arms import Arms
from submax.environments.arms.poisson import Poisson

WORLD = np.array([[0.0, 0.5, 2.0], [3.0, 0.1, 7.0]])


def test_the_problem_is_arms_with_counts():
    assert Poisson(3).problem == Problem(Arms(3), 0, Counts())


def test_means_and_best_by_hand():
    environment = Poisson(3)
    context = np.zeros((2, 2, 0))
    action = np.array([[0, 2], [1, 0]])[..., None]
    assert environment.mean_reward(WORLD, context, action).tolist() == [[0.0, 2.0], [0.1, 3.0]]
    assert environment.best_reward(WORLD, context).tolist() == [[2.0, 2.0], [7.0, 7.0]]


@pytest.mark.parametrize(("shape", "mean"), [(2.0, 1.0), (0.5, 10.0), (20.0, 3.0)])
def test_rates_have_the_prior_distribution(shape, mean, seed):
    world = Poisson(50, shape, mean).reset(200, np.random.default_rng(seed))
    assert world.shape == (200, 50)
    assert stats.kstest(world.ravel(), stats.gamma(shape, scale=mean / shape).cdf).pvalue > 1e-6
    error = mean / np.sqrt(shape * world.size)
    assert abs(world.mean() - mean) < 6 * error


@pytest.mark.parametrize("arm", [0, 1, 2])
def test_counts_come_as_often_as_the_poisson_law_says(arm, seed):
    draws = 20_000
    rng = np.random.default_rng(seed)
    action = np.full((2, draws, 1), arm)
    reward = Poisson(3).reward(WORLD, np.zeros((2, draws, 0)), action, rng)
    for drawn, rate in zip(reward, WORLD[:, arm], strict=True):
        for count in range(12):
            chance = stats.poisson(rate).pmf(count)
            # The last term is Bernstein's, for counts that hardly ever come.
            allowed = 6 * np.sqrt(chance * (1 - chance) / draws) + 12 / draws
            assert abs(np.mean(drawn == count) - chance) <= allowed


@pytest.mark.parametrize("arms", [0, -3, 2.0, True, "3", None])
def test_a_bad_number_of_arms_is_refused(arms):
    with raises_code("invalid-input", "arms"):
        Poisson(arms)


@pytest.mark.parametrize("name", ["shape", "mean"])
@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), True, "1", None])
def test_a_bad_prior_is_refused(name, value):
    with raises_code("invalid-input"):
        Poisson(3, **{name: value})
