import numpy as np
import pytest
from refusals import raises_code

from submax.core.contracts.problem import Problem
from submax.core.numerics.standard_error import standard_error
from submax.core.rewards.binary import Binary
from submax.core.spaces.slots import Slots
from submax.environments.networks.combinatorial import Combinatorial
from submax.environments.networks.contextual import Contextual

ENVIRONMENTS_OF_THE_PAPER = 20
HUGE = (10,) * 12


def test_the_problem_is_slots_with_a_context():
    environment = Combinatorial()
    assert environment.problem == Problem(Slots((2, 4, 8, 16, 32)), 20, Binary())
    assert environment.problem.space.size == 32768


def test_one_slot_is_the_contextual_environment(seed):
    slots, arms = Combinatorial((4,), shift=-1.0), Contextual(4, shift=-1.0)
    rng = np.random.default_rng(seed)
    world = slots.reset(3, rng)
    context = slots.contexts(world, 5, rng)
    action = rng.integers(4, size=(3, 5, 1))
    for one, other in zip(world, arms.reset(3, np.random.default_rng(seed)), strict=True):
        assert np.array_equal(one, other)
    mean = arms.mean_reward(world, context, action)
    assert np.array_equal(slots.mean_reward(world, context, action), mean)
    best = arms.best_reward(world, context)
    assert np.array_equal(slots.best_reward(world, context), best)


def test_a_huge_space_has_means_and_no_best(seed):
    environment = Combinatorial(HUGE)
    rng = np.random.default_rng(seed)
    world = environment.reset(2, rng)
    context = environment.contexts(world, 50, rng)
    action = environment.problem.space.action(rng.integers(10**12, size=(2, 50)))
    mean = environment.mean_reward(world, context, action)
    assert mean.shape == (2, 50)
    assert np.all((mean > 0) & (mean < 1))
    with raises_code("invalid-input"):
        environment.best_reward(world, context)


def test_no_action_drawn_is_better_than_the_best(seed):
    environment = Combinatorial()
    rng = np.random.default_rng(seed)
    world = environment.reset(3, rng)
    context = environment.contexts(world, 200, rng)
    best = environment.best_reward(world, context)
    for _ in range(20):
        action = environment.problem.space.action(rng.integers(32768, size=(3, 200)))
        assert np.all(environment.mean_reward(world, context, action) <= best + 1e-12)


def test_the_average_reward_is_that_of_the_paper():
    """Three standard errors of the difference, ours and that of the paper's 20 environments.

    Such a test fails by chance in one of 370 seeds: the seed is fixed.
    """
    rng = np.random.default_rng(0)
    environment = Combinatorial()
    world = environment.reset(500, rng)
    context = environment.contexts(world, 200, rng)
    action = environment.problem.space.action(rng.integers(32768, size=(500, 200)))
    average = environment.mean_reward(world, context, action).mean(axis=1)
    error = np.hypot(standard_error(average), average.std() / np.sqrt(ENVIRONMENTS_OF_THE_PAPER))
    assert abs(average.mean() - 0.0483) < 3 * error


@pytest.mark.parametrize("sizes", [(), (2, 0), (2.0,), (True, 2), ("2",), [2, 3], 4])
def test_bad_sizes_are_refused(sizes):
    with raises_code("invalid-input"):
        Combinatorial(sizes)


@pytest.mark.parametrize("name", ["dimension", "hidden"])
def test_a_bad_number_is_refused(name):
    with raises_code("invalid-input"):
        Combinatorial(**{name: 0})
