import numpy as np
import pytest
from refusals import raises_code
from scipy import stats

from submax.core.contracts.problem import Problem
from submax.core.rewards.binary import Binary
from submax.core.spaces.arms import Arms
from submax.environments.arms.bernoulli import Bernoulli


def test_the_problem_is_plain_arms():
    assert Bernoulli(7).problem == Problem(Arms(7), 0, Binary())


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (1.0, 9.0), (1.0, 99.0), (0.5, 2.0)])
def test_chances_have_the_prior_distribution(alpha, beta, seed):
    world = Bernoulli(50, alpha, beta).reset(200, np.random.default_rng(seed))
    assert world.shape == (200, 50)
    assert stats.kstest(world.ravel(), stats.beta(alpha, beta).cdf).pvalue > 1e-6


def test_means_and_best_by_hand():
    environment = Bernoulli(3)
    world = np.array([[0.1, 0.5, 0.9], [0.8, 0.2, 0.0]])
    context = np.zeros((2, 2, 0))
    action = np.array([[0, 2], [1, 0]])[..., None]
    assert environment.mean_reward(world, context, action).tolist() == [[0.1, 0.9], [0.2, 0.8]]
    assert environment.best_reward(world, context).tolist() == [[0.9, 0.9], [0.8, 0.8]]


def test_certain_arms_never_and_always_pay(seed):
    world = np.array([[0.0, 1.0]])
    action = np.tile(np.array([[0], [1]]), (1, 500, 1)).reshape(1, 1000, 1)
    reward = Bernoulli(2).reward(world, np.zeros((1, 1000, 0)), action, np.random.default_rng(seed))
    assert np.array_equal(reward, action[..., 0].astype(np.float64))


@pytest.mark.parametrize("arms", [0, -3, 2.0, True, "3", None, float("nan")])
def test_a_bad_number_of_arms_is_refused(arms):
    with raises_code("invalid-input"):
        Bernoulli(arms)


@pytest.mark.parametrize("name", ["alpha", "beta"])
@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), True, "1", None])
def test_a_bad_prior_is_refused(name, value):
    with raises_code("invalid-input"):
        Bernoulli(3, **{name: value})
