import numpy as np
import pytest
from builtin_examples import examples
from scipy import special
from scipy.optimize import minimize_scalar

from submax.environments import ENVIRONMENTS
from submax.research.beyond.real_valued import Demand, Pricing


def test_means_by_hand():
    world = Demand(np.array([2.0]), np.array([[1.0, -1.0]]), np.array([0.5]))
    context = np.array([[[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]])
    action = np.array([[[6.0], [2.0], [4.0]]])
    # α is 3, 1 and 1.8.
    expected = np.array([[6.0, 2.0, 4.0]]) * special.expit([[0.0, 0.0, -0.2]])
    assert np.allclose(Pricing().mean_reward(world, context, action), expected)


@pytest.mark.parametrize("environment", list(examples(ENVIRONMENTS, "pricing")), ids=repr)
def test_the_best_price_is_that_of_a_numerical_search(environment, seed):
    rng = np.random.default_rng(seed)
    world = environment.reset(8, rng)
    context = environment.contexts(world, 4, rng)
    best = environment.best_reward(world, context)
    price = environment.best_price(world, context)
    for replica, row in np.ndindex(best.shape):
        level = world.intercept[replica] + context[replica, row] @ world.taste[replica]
        slope = world.slope[replica]
        found = minimize_scalar(
            lambda p, level=level, slope=slope: -p * special.expit(level - slope * p),
            bounds=(environment.low, environment.high),
            method="bounded",
            options={"xatol": 1e-9},
        )
        # The search stops a little short of an end of the range.
        assert best[replica, row] >= -found.fun * (1 - 1e-12)
        assert best[replica, row] == pytest.approx(-found.fun, rel=1e-6)
        width = environment.high - environment.low
        assert price[replica, row] == pytest.approx(found.x, rel=0, abs=1e-5 * width)


@pytest.mark.parametrize("level", [-30.0, -5.0, 5.0, 50.0, 1000.0])
def test_a_best_price_outside_the_range_is_moved_to_its_end(level):
    environment = Pricing(1.0, 2.0, 0)
    for slope in (0.01, 1.0, 100.0):
        world = Demand(np.array([level]), np.zeros((1, 0)), np.array([slope]))
        context = np.zeros((1, 1, 0))
        grid = np.linspace(1.0, 2.0, 1001)[None, :, None]
        means = environment.mean_reward(world, np.zeros((1, 1001, 0)), grid)
        best = environment.best_reward(world, context)[0, 0]
        assert 1.0 <= environment.best_price(world, context)[0, 0] <= 2.0
        assert means.max() <= best * (1 + 1e-12)
        assert best == pytest.approx(means.max(), rel=1e-2)


def test_inside_the_range_the_best_mean_is_omega_over_beta(seed):
    """At p* the odds of a sale are W, so that p* W / (1 + W) = W / β."""
    environment = Pricing(context=0)
    world = environment.reset(500, np.random.default_rng(seed))
    best = environment.best_reward(world, np.zeros((500, 1, 0)))[:, 0]
    lambert = special.lambertw(np.exp(world.intercept - 1)).real
    assert np.allclose(best, lambert / world.slope, rtol=1e-12)


def test_rewards_are_the_price_or_nothing_as_often_as_the_chance_says(seed):
    environment = Pricing()
    rng = np.random.default_rng(seed)
    world = environment.reset(4, rng)
    context = np.repeat(environment.contexts(world, 1, rng), 10_000, axis=1)
    action = np.full((4, 10_000, 1), 3.0)
    reward, mean = environment.outcome(world, context, action, rng)
    assert np.all((reward == 0) | (reward == 3.0))
    chance = mean[:, 0] / 3.0
    error = np.sqrt(chance * (1 - chance) / 10_000)
    assert np.all(np.abs((reward > 0).mean(axis=1) - chance) < 6 * error + 12 / 10_000)


@pytest.mark.parametrize("environment", list(examples(ENVIRONMENTS, "pricing")), ids=repr)
def test_the_best_price_is_usually_inside_the_range(environment, seed):
    rng = np.random.default_rng(seed)
    world = environment.reset(2000, rng)
    assert world.slope.min() > 0
    price = environment.best_price(world, environment.contexts(world, 1, rng))
    inside = (price > environment.low) & (price < environment.high)
    assert inside.mean() > 0.9
