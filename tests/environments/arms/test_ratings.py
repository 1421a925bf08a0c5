import numpy as np
import pytest
from refusals import raises_code
from scipy import stats

from submax.core.contracts.problem import Problem
from submax.core.rewards.discrete import Discrete
from submax.core.spaces.arms import Arms
from submax.environments.arms.ratings import Ratings

WORLD = np.array([[[0.5, 0.5, 0.0], [0.0, 0.0, 1.0]], [[0.2, 0.3, 0.5], [1.0, 0.0, 0.0]]])
VALUES = (-1.0, 0.0, 4.0)


def test_the_problem_is_arms_with_the_values():
    assert Ratings(3).problem == Problem(Arms(3), 0, Discrete((1.0, 2.0, 3.0, 4.0, 5.0)))


def test_means_and_best_by_hand():
    environment = Ratings(2, VALUES)
    context = np.zeros((2, 2, 0))
    action = np.array([[0, 1], [1, 0]])[..., None]
    mean = environment.mean_reward(WORLD, context, action)
    assert np.allclose(mean, [[-0.5, 4.0], [-1.0, 1.8]], rtol=0, atol=1e-12)
    assert np.allclose(environment.best_reward(WORLD, context), [[4.0, 4.0], [1.8, 1.8]])


@pytest.mark.parametrize("concentration", [0.3, 1.0, 7.0])
def test_the_chances_of_a_value_are_those_of_a_symmetric_dirichlet(concentration, seed):
    """Each coordinate of Dirichlet(κ, …, κ) in V dimensions is Beta(κ, (V − 1) κ)."""
    environment = Ratings(50, VALUES, concentration)
    world = environment.reset(200, np.random.default_rng(seed))
    assert world.shape == (200, 50, 3)
    assert np.allclose(world.sum(axis=-1), 1.0, rtol=0, atol=1e-12)
    prior = stats.beta(concentration, 2 * concentration)
    for value in range(3):
        assert stats.kstest(world[..., value].ravel(), prior.cdf).pvalue > 1e-6


def test_values_come_as_often_as_their_chances_say(seed):
    draws = 20_000
    for replica, arm in np.ndindex(2, 2):
        action = np.full((2, draws, 1), arm)
        rng = np.random.default_rng(seed)
        reward = Ratings(2, VALUES).reward(WORLD, np.zeros((2, draws, 0)), action, rng)[replica]
        for value, chance in zip(VALUES, WORLD[replica, arm], strict=True):
            error = np.sqrt(chance * (1 - chance) / draws)
            assert abs(np.mean(reward == value) - chance) <= 6 * error


@pytest.mark.parametrize("arms", [0, -3, 2.0, True, "3", None])
def test_a_bad_number_of_arms_is_refused(arms):
    with raises_code("invalid-input", "arms"):
        Ratings(arms)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, 2.0], "values must be a tuple of numbers"),
        ((1.0, "2"), "values must be a tuple of numbers"),
        ((False, True), "values must be a tuple of numbers"),
        ((1.0,), "a tuple of two"),
        ((1.0, float("nan")), "a finite number, not nan"),
        ((2.0, 1.0), "values must rise"),
        ((1.0, 1.0), "values must rise"),
    ],
)
def test_bad_values_are_refused(values, message):
    with raises_code("invalid-input"):
        Ratings(3, values)


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), True, "1", None])
def test_a_bad_concentration_is_refused(value):
    with raises_code("invalid-input", "concentration"):
        Ratings(3, concentration=value)
