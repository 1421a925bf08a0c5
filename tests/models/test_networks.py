import itertools
import math

import jax
import numpy as np
import pytest
from scipy import stats
from scipy.special import softmax

from submax.core.spaces import Box
from submax.models.networks.choices import (
    DecodedChoices,
    choice_probabilities,
    joint_probabilities,
)
from submax.models.networks.densities import (
    NARROWEST,
    REACH,
    WIDEST,
    MixtureDensity,
    first_locations,
    outputs,
)
from submax.models.nn.designs import log_density
from submax.testing.assertions import SMALLEST_P_VALUE, goodness_of_fit

REPLICAS, LEVELS, ROWS, DRAWS, COMPONENTS = 2, 2, 1, 2, 3
BINS, NODES = 4, 30
# With 30 nodes in each of 4 bins, Gauss-Legendre integrates the narrowest component to 1e-12.
SHAPES = [((), 1), ((), 2), ((2, 3), 1), ((3,), 2)]
shapes = pytest.mark.parametrize(("sizes", "reals"), SHAPES, ids=str)
SINGLE = 2 * (REACH + 1) / NARROWEST * np.finfo(np.float32).eps
"""Densities are evaluated in single precision, and so is the largest exponent, (1 + reach) / s."""


def some_output(sizes, reals, seed, scale=2.0, rows=ROWS):
    width = outputs(sum(sizes), reals, COMPONENTS)
    shape = (REPLICAS, LEVELS, rows, DRAWS, width)
    drawn = np.random.default_rng((seed, width)).normal(scale=scale, size=shape)
    return drawn.astype(np.float32)


def unit_box(sizes, reals):
    return Box((0.0,) * reals, (1.0,) * reals, sizes)


def mixture_of(output, sizes, reals):
    return MixtureDensity.of(output, unit_box(sizes, reals), COMPONENTS)


def line():
    """Places and weights of the nodes in all bins of one dimension: ``[B, P]`` twice."""
    place, weight = np.polynomial.legendre.leggauss(NODES)
    first = np.arange(BINS)[:, None] / BINS
    return first + (place + 1) / (2 * BINS), np.broadcast_to(weight / (2 * BINS), (BINS, NODES))


def masses(mixture, sizes, reals):
    """The probability of every joint choice and bin: ``[R, n, L, Π K · B^d]``."""
    place, weight = line()
    points = np.array(list(itertools.product(place.ravel(), repeat=reals)))
    weights = np.array([math.prod(one) for one in itertools.product(weight.ravel(), repeat=reals)])
    index = np.array(list(itertools.product(np.repeat(np.arange(BINS), NODES), repeat=reals)))
    cell = index @ BINS ** np.arange(reals)
    found = []
    for choice in itertools.product(*map(range, sizes)):
        action = np.concatenate([np.tile(choice, (len(points), 1)), points], axis=1)
        tiled = np.broadcast_to(action, (REPLICAS, mixture.component.shape[2], *action.shape))
        density = mixture.prob(tiled) * weights
        found.append(np.stack([density[..., cell == one].sum(-1) for one in range(BINS**reals)]))
    return np.moveaxis(np.concatenate(found), 0, -1)


def cells(action, sizes, reals):
    """Which joint choice and bin each action is in, numbered as in ``masses``."""
    numbers = np.minimum((action[..., len(sizes) :] * BINS).astype(np.int64), BINS - 1)
    joint = np.zeros(action.shape[:-1], dtype=np.int64)
    for slot, size in enumerate(sizes):
        joint = joint * size + action[..., slot].astype(np.int64)
    return joint * BINS**reals + numbers @ BINS ** np.arange(reals)


@shapes
def test_the_density_integrates_to_1_and_draws_agree_with_it(sizes, reals, seed):
    mixture = mixture_of(some_output(sizes, reals, seed), sizes, reals)
    expected = masses(mixture, sizes, reals)
    np.testing.assert_allclose(expected.sum(axis=-1), 1, rtol=SINGLE)
    for level in range(LEVELS):
        rng = np.random.default_rng((seed, level))
        drawn = mixture.sample(level, 4000, rng)
        assert drawn.shape == (REPLICAS, ROWS, 4000, len(sizes) + reals)
        assert drawn[..., len(sizes) :].min() >= 0
        assert drawn[..., len(sizes) :].max() <= 1
        index = cells(drawn, sizes, reals)
        for replica, row in np.ndindex(REPLICAS, ROWS):
            share = expected[replica, row, level] / expected[replica, row, level].sum()
            assert goodness_of_fit(index[replica, row], share) > SMALLEST_P_VALUE


def test_a_component_is_a_logistic_density_cut_off_at_0_and_1(seed):
    rng = np.random.default_rng(seed)
    location, scale = rng.uniform(-2, 3, size=12), rng.uniform(NARROWEST, WIDEST, size=12)
    shape = (1, 12, 1, 1, 1, 1)
    mixture = MixtureDensity(
        np.zeros((1, 12, 1, 1, 0)),
        np.ones(shape[:-1]),
        location.reshape(shape),
        scale.reshape(shape),
        unit_box((), 1),
    )
    place = np.linspace(0, 1, 21)
    found = mixture.prob(place.reshape(1, 1, 21, 1))[0, 0]
    for one in range(12):
        # Mirrored where the location is high: the differences keep their digits in the lower tail.
        middle, side = location[one], 1.0
        if middle < 0.5:
            middle, side = 1 - middle, -1.0
        logistic = stats.logistic(middle, scale[one])
        inside = logistic.cdf(1) - logistic.cdf(0)
        expected = logistic.pdf(place if side > 0 else 1 - place) / inside
        np.testing.assert_allclose(found[one], expected, rtol=SINGLE)
        drawn = mixture.sample(one, 2000, rng).ravel()
        fit = stats.kstest(
            drawn if side > 0 else 1 - drawn,
            lambda x, own=logistic, share=inside: (own.cdf(x) - own.cdf(0)) / share,
        )
        assert fit.pvalue > SMALLEST_P_VALUE


@shapes
def test_extreme_outputs_give_densities_and_draws(sizes, reals, seed):
    rng = np.random.default_rng(seed)
    output = some_output(sizes, reals, seed, rows=4)
    output = rng.choice([-50.0, 0.0, 50.0], size=output.shape).astype(np.float32)
    mixture = mixture_of(output, sizes, reals)
    assert np.all((mixture.scale >= NARROWEST * 0.999) & (mixture.scale <= WIDEST * 1.001))
    reach = np.abs(mixture.location - first_locations(COMPONENTS, reals))
    assert np.all(reach <= REACH)
    for level in range(LEVELS):
        drawn = mixture.sample(level, 200, rng)
        numbers = drawn[..., len(sizes) :]
        assert np.all((numbers >= 0) & (numbers <= 1))
        density = mixture.prob(drawn)
        assert np.isfinite(density).all()
        assert np.all(density[:, :, level] > 0)
    ends = np.array(list(itertools.product([0.0, 1.0], repeat=len(sizes) + reals)))
    found = mixture.prob(np.broadcast_to(ends, (REPLICAS, 4, *ends.shape)))
    assert np.isfinite(found).all()
    assert np.all(found >= 0)
    np.testing.assert_allclose(masses(mixture, sizes, reals).sum(axis=-1), 1, rtol=SINGLE)


@pytest.mark.parametrize("reals", [1, 2])
def test_in_training_the_density_is_the_same(reals, seed):
    rng = np.random.default_rng(seed)
    count, width = 200, outputs(0, reals, COMPONENTS)
    output = rng.normal(scale=2.0, size=(count, width)).astype(np.float32)
    output[:20] = rng.choice([-50.0, 50.0], size=(20, width))
    numbers = rng.random((count, reals)).astype(np.float32)
    numbers[:10] = rng.choice([0.0, 1.0], size=(10, reals))
    both = jax.value_and_grad(lambda one, x: log_density(one, x, COMPONENTS))
    found, slope = jax.jit(jax.vmap(both))(output, numbers)
    mixture = mixture_of(output[None, None, :, None], (), reals)
    exact = np.log(mixture.prob(numbers[None, :, None].astype(np.float64))[0, :, 0, 0])
    # z = (x − m) / s is at most (1 + reach) / narrowest for each number. The functions that give m
    # and s are accurate to about 8 units in the last place each, the difference and the quotient to
    # one each; the log-density has slopes up to 1 in z, and a few more roundings follow.
    largest = reals * (1 + REACH) / NARROWEST
    np.testing.assert_allclose(found, exact, rtol=0, atol=32 * largest * np.finfo(np.float32).eps)
    assert np.isfinite(slope).all()


# Slot choices

SIZES = ((1,), (4,), (1, 1), (2, 3), (3, 1, 2), (4, 2, 1, 3, 2))


def slots_of(row, sizes):
    """One row of all choices, as an array for each slot."""
    return np.split(row, np.cumsum(sizes)[:-1])


def probability(parts, action, sizes):
    """(1/Z) Σ_z Π_s p_zs, written out."""
    chosen = [
        [slot[choice] for slot, choice in zip(slots_of(part, sizes), action, strict=True)]
        for part in parts
    ]
    return np.mean([math.prod(one) for one in chosen])


def some_probabilities(sizes, shape, seed):
    rng = np.random.default_rng((seed, *sizes))
    logits = rng.normal(scale=2.0, size=(*shape, sum(sizes))).astype(np.float32)
    return choice_probabilities(logits, sizes)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize(
    ("scale", "gap"),
    [(0, 0), (1, 0), (100, 0), (1e30, 0), (1, 300), (1, 710), (1, 1e4), (1e30, 1e30)],
)
def test_choices_have_softmax_probabilities_within_their_slot(sizes, scale, gap, seed):
    """Also in a slot whose logits are far below those of the others."""
    rng = np.random.default_rng((seed, *sizes))
    logits = scale * rng.normal(size=(3, 2, sum(sizes)))
    far_below = np.repeat(gap * np.arange(len(sizes)), sizes)
    logits = (logits - far_below).astype(np.float32)
    found = choice_probabilities(logits, sizes)
    assert found.shape == logits.shape
    for place in itertools.product(range(3), range(2)):
        slots = slots_of(logits[place].astype(float), sizes)
        expected = np.concatenate([softmax(slot) for slot in slots])
        np.testing.assert_allclose(found[place], expected, rtol=1e-4, atol=1e-12)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_joint_probabilities_are_mean_products_in_the_order_of_the_listing(sizes, seed):
    probabilities = some_probabilities(sizes, (2, 3), seed)
    found = joint_probabilities(probabilities, sizes)
    assert found.shape == (2, math.prod(sizes))
    listing = list(itertools.product(*map(range, sizes)))
    for one in range(2):
        expected = [probability(probabilities[one], action, sizes) for action in listing]
        np.testing.assert_allclose(found[one], expected, rtol=1e-12)
        np.testing.assert_allclose(found[one].sum(), 1.0, rtol=1e-12)


@pytest.mark.parametrize("uniform", [0.0, 0.25, 0.5, 1 - 2**-40])
def test_a_choice_of_probability_zero_is_never_drawn(uniform):
    class Fixed:
        def integers(self, high, size):
            return np.zeros(size, dtype=np.int64) + high - 1

        def random(self, shape):
            return np.full(shape, uniform)

    slots = np.array([0.0, 1.0, 0.0, 0.25, 0.0, 0.75, 0.0, 0.5, 0.5])
    probabilities = np.tile(slots, (3, 4, 5, 1))
    action = DecodedChoices(probabilities[:, None], (3, 3, 3)).sample(0, 2, Fixed())
    found = np.take_along_axis(slots.reshape(3, 3), action.reshape(-1, 3).T, axis=1)
    assert np.all(found > 0)
