"""Environments whose truth is a small network: contextual, combinatorial and drifting."""

import itertools

import numpy as np
import pytest
from builtin_examples import examples
from refusals import raises_code
from scipy import special
from scipy.optimize import minimize_scalar

from submax import (
    Combinatorial,
    Contextual,
    DisjointContextual,
    DriftingBernoulli,
    DriftingContextual,
)
from submax.core.numerics import standard_error
from submax.environments import ENVIRONMENTS
from submax.research.beyond.real_valued import Demand, Pricing, SmoothReward

HUGE = (10,) * 12


def met(environment, replicas, rows, seed):
    rng = np.random.default_rng(seed)
    world = environment.reset(replicas, rng)
    return world, environment.contexts(world, rows, rng), rng


def one_mean(environment, world, replica, context, action):
    """The network with its one-hot input written out and its units one by one."""
    one_hot = [np.eye(size)[one] for one, size in zip(action, environment.sizes, strict=True)]
    inputs = np.concatenate([*one_hot, context])
    weight = [*world.choice_weight[replica], *world.context_weight[replica]]
    total = environment.shift
    for unit, output in enumerate(world.output_weight[replica]):
        before = sum(value * row[unit] for value, row in zip(inputs, weight, strict=True))
        total += output * max(before, 0.0)
    return special.expit(total)


def listed_best(environment, world, context):
    """The highest mean reward, all joint actions listed."""
    (replicas, rows, _), actions = context.shape, environment.problem.space.listing()
    every = np.tile(actions, (replicas, rows, 1))
    means = environment.mean_reward(world, np.repeat(context, len(actions), axis=1), every)
    return means.reshape(replicas, rows, -1).max(axis=-1)


@pytest.mark.parametrize("sizes", [(4,), (1,), (2, 3), (3, 1, 2)])
def test_means_are_those_of_the_written_out_network(sizes, seed):
    environment = Combinatorial(sizes, dimension=3, shift=-1.0, hidden=5)
    world, context, rng = met(environment, 2, 4, seed)
    action = environment.problem.space.uniform((2, 4), rng)
    found = environment.mean_reward(world, context, action)
    for replica, row in itertools.product(range(2), range(4)):
        expected = one_mean(
            environment, world, replica, context[replica, row], action[replica, row]
        )
        assert found[replica, row] == pytest.approx(expected, rel=0, abs=1e-12)


def test_weights_are_glorot_uniform(seed):
    world = Combinatorial((2, 4), dimension=4, hidden=10).reset(200, np.random.default_rng(seed))
    assert [part.shape for part in world] == [(200, 6, 10), (200, 4, 10), (200, 10)]
    for part, fans in zip(world, (6 + 4 + 10, 6 + 4 + 10, 10 + 1), strict=True):
        limit = np.sqrt(6 / fans)
        assert np.abs(part).max() <= limit
        # Uniform: variance limit² / 3; the square of a draw has a spread of 0.3 limit².
        error = 0.3 * limit**2 / np.sqrt(part.size)
        assert abs(np.mean(part**2) - limit**2 / 3) < 6 * error
        assert abs(np.mean(part)) < 6 * limit / np.sqrt(3 * part.size)


SIZES = [
    *(((3,), 4), ((300,), 4), ((5, 7, 11), 16), ((40, 2, 9), 32), ((2,) * 10, 3)),
    *(((1, 17, 1, 16, 1), 32), ((33, 32), 1), ((257, 3), 64), ((2, 4, 8, 16, 32), 32)),
]


@pytest.mark.parametrize(("sizes", "hidden"), SIZES)
def test_the_best_reward_is_that_of_enumeration(sizes, hidden, seed):
    environment = Combinatorial(sizes, dimension=4, shift=0.0, hidden=hidden)
    world, context, _ = met(environment, 3, 2, seed)
    found = environment.best_reward(world, context)
    assert np.allclose(found, listed_best(environment, world, context), rtol=0, atol=2.5e-12)
    assert environment.best_reward(world, context[:, :0]).shape == (3, 0)


@pytest.mark.parametrize("sign", [-1, 0, 1])
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e6])
def test_the_best_is_exact_for_outputs_of_one_sign_and_any_scale(sign, scale, seed):
    environment = Combinatorial((6, 8, 16), dimension=3, shift=0.0, hidden=8)
    world, context, _ = met(environment, 2, 5, seed)
    world = world._replace(output_weight=sign * scale * np.abs(world.output_weight))
    found = environment.best_reward(world, context)
    # Logits are exact to 1e-11 of the scale, and a number near 1/2 is rounded by 1e-16.
    error = max(2.5e-12 * scale, 3e-16)
    assert np.allclose(found, listed_best(environment, world, context), rtol=0, atol=error)


def test_a_huge_space_has_means_and_no_best(seed):
    environment = Combinatorial(HUGE)
    world, context, rng = met(environment, 2, 50, seed)
    action = environment.problem.space.action(rng.integers(10**12, size=(2, 50)))
    mean = environment.mean_reward(world, context, action)
    assert mean.shape == (2, 50)
    assert np.all((mean > 0) & (mean < 1))
    with raises_code("invalid-input"):
        environment.best_reward(world, context)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Contextual(4, 20, -1.0), Combinatorial((4,), shift=-1.0)),
        (Contextual(3, 5, -1.0, 8), DriftingContextual(3, 5, -1.0, 8)),
    ],
)
def test_one_slot_and_a_truth_that_has_not_moved_are_the_contextual_environment(one, other, seed):
    results = []
    for environment in (one, other):
        world, context, rng = met(environment, 4, 6, seed)
        action = rng.integers(environment.problem.space.size, size=(4, 6, 1))
        best = environment.best_reward(world, context)
        results.append([*environment.outcome(world, context, action, rng), best])
    assert np.array_equal(*results)


@pytest.mark.parametrize(
    ("environment", "reported", "of_the_paper"),
    [
        (Contextual(shift=0.0), 0.501, 50),
        (Contextual(shift=-2.0), 0.123, 50),
        (Contextual(shift=-4.0), 0.0185, 50),
        (Combinatorial(), 0.0483, 20),
    ],
    ids=repr,
)
def test_the_average_reward_is_that_of_the_paper(environment, reported, of_the_paper):
    """Three standard errors of the difference, ours and that of the paper's environments.

    Such a test fails by chance in one of 370 seeds: the seed is fixed.
    """
    world, context, rng = met(environment, 1000, 100, 0)
    action = environment.problem.space.uniform((1000, 100), rng)
    average = environment.mean_reward(world, context, action).mean(axis=1)
    error = np.hypot(standard_error(average), average.std() / np.sqrt(of_the_paper))
    assert abs(average.mean() - reported) < 3 * error


@pytest.mark.parametrize(
    ("environment", "variances"),
    [
        (DriftingContextual(6, 4, 0.0, 10, memory=10.0), (0.1, 0.1, 2 / 11)),
        # The path of every arm.
        (DriftingBernoulli(100, memory=10.0), (1.0,)),
    ],
)
@pytest.mark.parametrize("moves", [(6,), (2, 4), (1, 1, 1, 1, 1, 1)])
def test_drift_keeps_the_variance_and_correlation_falls(environment, variances, moves, seed):
    """However the six decisions are parted; memory 10 leaves exp(−0.6)."""
    rng = np.random.default_rng(seed)
    start = world = environment.reset(500, rng)
    for count in moves:
        world = environment.advance(world, count, rng)
    for old, new, variance in zip(start, world, variances, strict=False):
        # A square has a variance of at most 2 variance², that of a normal, and a product less.
        error = np.sqrt(2 * variance**2 / old.size)
        assert abs(np.mean(new)) < 6 * np.sqrt(variance / old.size)
        assert abs(np.mean(new**2) - variance) < 6 * error
        assert abs(np.mean(old * new) - np.exp(-0.6) * variance) < 6 * error


# Bump

SMOOTH = [
    SmoothReward(),
    SmoothReward(context=0),
    SmoothReward(2, context=1, width=0.4),
    SmoothReward(1, sizes=(3,), context=0),
    SmoothReward(2, sizes=(2, 1, 4), context=3),
]
REPLICAS = 3


def best_choices(environment, world):
    """The choice of height 1 in each slot: ``[R, S]``."""
    borders = np.cumsum(environment.sizes)[:-1]
    slots = np.split(world.height, borders, axis=1) if environment.sizes else []
    chosen = [slot.argmax(axis=1) for slot in slots]
    return np.stack(chosen, axis=1) if chosen else np.zeros((REPLICAS, 0), dtype=np.int64)


def smooth_mean(environment, world, replica, context, action):
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


@pytest.mark.parametrize("environment", SMOOTH, ids=repr)
def test_means_are_those_of_the_equation(environment, seed):
    world, context, rng = met(environment, REPLICAS, 4, seed)
    action = environment.problem.space.uniform(context.shape[:2], rng)
    found = environment.mean_reward(world, context, action)
    for replica, row in np.ndindex(found.shape):
        expected = smooth_mean(
            environment, world, replica, context[replica, row], action[replica, row]
        )
        assert found[replica, row] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("environment", SMOOTH, ids=repr)
def test_the_best_action_earns_exactly_one(environment, seed):
    world, context, _ = met(environment, REPLICAS, 4, seed)
    choice = np.repeat(best_choices(environment, world)[:, None], context.shape[1], axis=1)
    point = environment.best_point(world, context, choice)
    assert point.min() >= 0.2
    assert point.max() <= 0.8
    action = np.concatenate([choice, point], axis=-1)
    assert environment.problem.space.contains(action)
    mean = environment.mean_reward(world, context, action)
    assert np.array_equal(mean, np.ones(context.shape[:2]))
    assert np.array_equal(environment.best_reward(world, context), mean)


# Pricing


def test_means_by_hand():
    world = Demand(np.array([2.0]), np.array([[1.0, -1.0]]), np.array([0.5]))
    context = np.array([[[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]])
    action = np.array([[[6.0], [2.0], [4.0]]])
    # α is 3, 1 and 1.8.
    expected = np.array([[6.0, 2.0, 4.0]]) * special.expit([[0.0, 0.0, -0.2]])
    assert np.allclose(Pricing().mean_reward(world, context, action), expected)


@pytest.mark.parametrize("environment", list(examples(ENVIRONMENTS, "pricing")), ids=repr)
def test_the_best_price_is_that_of_a_numerical_search(environment, seed):
    world, context, _ = met(environment, 8, 4, seed)
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


def test_where_arms_have_weights_of_their_own_no_fixed_arm_is_good(seed):
    """The best fixed arm has most of random's regret, and rewards are σ(vᵀ ReLU(W_a c) + s)."""
    environment = DisjointContextual(arms=3, dimension=4, shift=-1.0, hidden=5)
    world, context, _ = met(environment, 2, 7, seed)
    weight = world.choice_weight.reshape(2, 3, 4, 5)
    for arm in range(3):
        hidden = np.maximum(np.einsum("rnd,rdh->rnh", context, weight[:, arm]), 0)
        expected = 1 / (1 + np.exp(1 - np.einsum("rnh,rh->rn", hidden, world.output_weight)))
        found = environment.mean_reward(world, context, np.full((2, 7, 1), arm))
        np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize(("kind", "published"), [(Contextual, 0.19), (DisjointContextual, 0.91)])
def test_the_regret_of_the_best_fixed_arm_is_the_published_share_of_randoms(kind, published):
    environment = kind()
    world, context, _ = met(environment, 200, 500, 0)
    actions = (np.full((200, 500, 1), arm) for arm in range(4))
    table = np.stack([environment.mean_reward(world, context, one) for one in actions])
    regret = environment.best_reward(world, context) - table
    fixed, random = regret.mean(axis=2).min(axis=0), regret.mean(axis=(0, 2))
    assert fixed.mean() / random.mean() == pytest.approx(published, abs=0.005)
