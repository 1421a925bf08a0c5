import numpy as np
import pytest
from refusals import raises_code

from submax.core.contracts.problem import Problem
from submax.core.spaces.arms import Arms
from submax.environments.networks.contextual import Contextual
from submax.environments.networks.drifting_contextual import DriftingContextual


def test_the_problem_is_arms_with_a_context():
    assert DriftingContextual(3, 5).problem == Problem(Arms(3), 5)


def test_before_it_moves_it_is_contextual(seed):
    moving, still = DriftingContextual(3, 5, -1.0, 8), Contextual(3, 5, -1.0, 8)
    results = []
    for environment in (moving, still):
        rng = np.random.default_rng(seed)
        world = environment.reset(4, rng)
        context = environment.contexts(world, 6, rng)
        action = rng.integers(3, size=(4, 6, 1))
        best = environment.best_reward(world, context)
        results.append([*environment.outcome(world, context, action, rng), best])
    assert np.array_equal(*results)


@pytest.mark.parametrize("moves", [(6,), (2, 4), (1, 1, 1, 1, 1, 1)])
def test_variance_is_kept_and_correlation_falls(moves, seed):
    """However the six decisions are parted; memory 10 leaves exp(−0.6)."""
    environment = DriftingContextual(6, 4, 0.0, 10, memory=10.0)
    rng = np.random.default_rng(seed)
    start = environment.reset(500, rng)
    world = start
    for count in moves:
        world = environment.advance(world, count, rng)
    for old, new, fans in zip(start, world, (6 + 4 + 10, 6 + 4 + 10, 10 + 1), strict=True):
        variance = 2 / fans
        # A square has a variance of at most 2 variance², that of a normal, and a product less.
        error = np.sqrt(2 * variance**2 / old.size)
        assert abs(np.mean(new)) < 6 * np.sqrt(variance / old.size)
        assert abs(np.mean(new**2) - variance) < 6 * error
        assert abs(np.mean(old * new) - np.exp(-0.6) * variance) < 6 * error


def test_the_best_is_the_best_arm_after_a_move(seed):
    environment = DriftingContextual(memory=10.0)
    rng = np.random.default_rng(seed)
    world = environment.advance(environment.reset(6, rng), 20, rng)
    context = environment.contexts(world, 5, rng)
    means = [environment.mean_reward(world, context, np.full((6, 5, 1), arm)) for arm in range(4)]
    best = environment.best_reward(world, context)
    assert np.allclose(best, np.max(means, axis=0), rtol=0, atol=1e-12)


def test_advancing_by_nothing_changes_nothing(seed):
    environment = DriftingContextual(3, 2, hidden=4)
    rng = np.random.default_rng(seed)
    world = environment.reset(4, rng)
    for old, new in zip(world, environment.advance(world, 0, rng), strict=True):
        assert np.array_equal(old, new)


@pytest.mark.parametrize("name", ["arms", "dimension", "hidden"])
@pytest.mark.parametrize("value", [0, -3, 2.0, True, "3", None])
def test_a_bad_number_is_refused(name, value):
    with raises_code("invalid-input"):
        DriftingContextual(**{name: value})


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), True, "1", None])
def test_a_bad_memory_is_refused(value):
    with raises_code("invalid-input", "memory"):
        DriftingContextual(memory=value)


def test_a_bad_shift_is_refused():
    with raises_code("invalid-input"):
        DriftingContextual(shift=float("nan"))
