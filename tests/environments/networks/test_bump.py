import itertools

import numpy as np
import pytest

from submax.core.spaces import Slots
from submax.research.beyond.real_valued import SmoothReward

ENVIRONMENTS = [
    SmoothReward(),
    SmoothReward(context=0),
    SmoothReward(2, context=1, width=0.4),
    SmoothReward(1, sizes=(3,), context=0),
    SmoothReward(2, sizes=(2, 1, 4), context=3),
]
REPLICAS = 3


def met(environment, seed, rows=4):
    rng = np.random.default_rng(seed)
    world = environment.reset(REPLICAS, rng)
    return world, environment.contexts(world, rows, rng), rng


def best_choices(environment, world):
    """The choice of height 1 in each slot: ``[R, S]``."""
    borders = np.cumsum(environment.sizes)[:-1]
    slots = np.split(world.height, borders, axis=1) if environment.sizes else []
    chosen = [slot.argmax(axis=1) for slot in slots]
    return np.stack(chosen, axis=1) if chosen else np.zeros((REPLICAS, 0), dtype=np.int64)


def one_mean(environment, world, replica, context, action):
    """The equation, part by part."""
    choice, point = action[: len(environment.sizes)], action[len(environment.sizes) :]
    before = [sum(environment.sizes[:slot]) for slot in range(len(environment.sizes))]
    rows = [int(start + one) for start, one in zip(before, choice, strict=True)]
    distance = 0.0
    for axis, value in enumerate(point):
        phase = world.phase[replica, axis]
        phase += sum(context * world.context_weight[replica, :, axis])
        phase += sum(world.choice_phase[replica, row, axis] for row in rows)
        distance += (value - 0.5 - 0.3 * np.sin(phase)) ** 2
    heights = [world.height[replica, row] for row in rows] or [1.0]
    return np.mean(heights) * np.exp(-distance / (2 * environment.width**2))


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=repr)
def test_means_are_those_of_the_equation(environment, seed):
    world, context, rng = met(environment, seed)
    action = environment.problem.space.uniform(context.shape[:2], rng)
    found = environment.mean_reward(world, context, action)
    for replica, row in np.ndindex(found.shape):
        expected = one_mean(
            environment, world, replica, context[replica, row], action[replica, row]
        )
        assert found[replica, row] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=repr)
def test_the_best_action_earns_exactly_one(environment, seed):
    world, context, _ = met(environment, seed)
    choice = np.repeat(best_choices(environment, world)[:, None], context.shape[1], axis=1)
    point = environment.best_point(world, context, choice)
    assert point.min() >= 0.2
    assert point.max() <= 0.8
    action = np.concatenate([choice, point], axis=-1)
    assert environment.problem.space.contains(action)
    mean = environment.mean_reward(world, context, action)
    assert np.array_equal(mean, np.ones(context.shape[:2]))
    assert np.array_equal(environment.best_reward(world, context), mean)


@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=repr)
def test_no_action_of_a_dense_grid_earns_more_and_one_comes_near(environment, seed):
    world, context, _ = met(environment, seed, rows=1)
    line = np.linspace(0, 1, 101)
    points = np.array(list(itertools.product(line, repeat=environment.dimensions)))
    choices = Slots(environment.sizes).listing() if environment.sizes else np.zeros((1, 0))
    action = np.concatenate(
        [np.repeat(choices, len(points), axis=0), np.tile(points, (len(choices), 1))], axis=1
    )
    mean = environment.mean_reward(
        world, np.repeat(context, len(action), axis=1), np.tile(action, (REPLICAS, 1, 1))
    )
    # A point of the grid is at most half a step away in each dimension.
    lost = environment.dimensions * 0.005**2 / (2 * environment.width**2)
    assert np.all(mean <= 1.0)
    assert np.all(mean.max(axis=1) >= np.exp(-lost) - 1e-12)


def test_one_choice_of_each_slot_is_the_best_and_any_can_be(seed):
    environment = SmoothReward(sizes=(3, 1, 2))
    world = environment.reset(300, np.random.default_rng(seed))
    first, single, last = np.split(world.height, [3, 4], axis=1)
    for heights in (first, single, last):
        assert np.array_equal((heights == 1.0).sum(axis=1), np.ones(300))
        assert len(np.unique(heights.argmax(axis=1))) == heights.shape[1]
    assert world.height.min() >= 0.3


def test_rewards_have_the_noise_that_is_asked_for(seed):
    environment = SmoothReward(noise=0.7)
    world, context, rng = met(environment, seed, rows=5000)
    action = environment.problem.space.uniform((REPLICAS, 5000), rng)
    outcome = environment.outcome(world, context, action, rng)
    noise = outcome.reward - outcome.mean
    assert abs(noise.mean()) < 6 * 0.7 / np.sqrt(noise.size)
    assert abs(np.mean(noise**2) - 0.49) < 6 * 0.49 * np.sqrt(2 / noise.size)
