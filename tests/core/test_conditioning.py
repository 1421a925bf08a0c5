import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from submax.core.conditioning import (
    LIMIT,
    ConditionalDistribution,
    Table,
    TabularBelief,
    estimated_density,
    mixture,
    rejection,
    unseen,
)
from submax.core.spaces import Arms
from submax.testing.assertions import SMALLEST_P_VALUE, goodness_of_fit

WEIGHTS = {
    "submax": (-1.0, 1.0),
    "clipped": (-2.0, 3.0),
    "two positive": (0.3, 0.7),
    "one alone": (0.0, 1.0),
    "three levels": (-0.6, 0.5, 1.1),
    "three levels, the middle taken away": (1.0, -1.5, 1.0),
}


class Betas(ConditionalDistribution):
    """Beta densities over 0 to 1 with ``shape [R, n, L, 2]``."""

    def __init__(self, shape):
        self.shape = shape

    def prob(self, action):
        first, second = np.moveaxis(self.shape[:, :, :, None], -1, 0)
        return stats.beta.pdf(action[:, :, None, :, 0], first, second)

    def sample(self, level, count, rng):
        first, second = np.moveaxis(self.shape[:, :, level, None], -1, 0)
        return rng.beta(first, second, size=(*self.shape.shape[:2], count))[..., None]

    def rows(self, row):
        return Betas(np.take_along_axis(self.shape, row[..., None, None], axis=1))


def exact(weights, shape, place):
    """The logarithm of max(Σ w_l π_l(a), 0) over its integral, for one row."""

    def mass(x):
        parts = [w * stats.beta.pdf(x, *one) for w, one in zip(weights, shape, strict=True)]
        return np.maximum(sum(parts), 0.0)

    grid = np.linspace(0, 1, 10001)
    with np.errstate(divide="ignore"):
        return np.log(mass(place)) - np.log(integrate.trapezoid(mass(grid), grid))


@pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)
def test_it_is_near_the_integral_and_says_how_near(weights, seed):
    rng = np.random.default_rng((seed, len(weights)))
    replicas, rows = 2, 25
    belief = Betas(rng.uniform(2.0, 6.0, size=(replicas, rows, len(weights), 2)))
    # Every row has weights of its own.
    given = rng.permuted(np.broadcast_to(weights, (replicas, rows, len(weights))), axis=-1)
    action = rng.random((replicas, rows, 5, 1))
    found = estimated_density(given, belief, action)
    assert found.known.all()
    for replica, row in np.ndindex(replicas, rows):
        truth = exact(given[replica, row], belief.shape[replica, row], action[replica, row, :, 0])
        log_prob, error = found.log_prob[replica, row], found.error[replica, row]
        possible = np.isfinite(truth)
        assert np.array_equal(np.isneginf(log_prob), ~possible)
        # All actions of a row have one constant. The grid is right to far below 1e-6.
        difference = log_prob[possible] - truth[possible]
        assert np.all(np.abs(difference) <= 7 * error + 1e-6)
    assert found.error.any() == (min(weights) < 0)


def test_the_error_is_honest_over_many_cases(seed):
    """Each row has draws of its own: standardized differences have mean 0 and variance 1."""
    rng = np.random.default_rng(seed)
    rows = 600
    one = np.array([[2.0, 3.0], [3.0, 2.0]])
    belief = Betas(np.broadcast_to(one, (1, rows, 2, 2)))
    weights = np.broadcast_to((-1.0, 1.0), (1, rows, 2))
    action = rng.uniform(0.6, 0.9, size=(1, rows, 1, 1))
    found = estimated_density(weights, belief, action)
    truth = exact((-1.0, 1.0), one, action[0, :, 0, 0])
    score = (found.log_prob[0, :, 0] - truth) / found.error[0]
    assert abs(score.mean()) < 7 / np.sqrt(rows)
    assert abs(np.mean(score**2) - 1) < 7 * np.sqrt(2 / rows)


@pytest.mark.parametrize("weights", [(-1.0, 1.0), (0.0, 0.0), (-1.0, -1.0), (-2.0, 1.5)], ids=str)
def test_where_nothing_is_left_nothing_is_known(weights):
    same = Betas(np.full((1, 2, 2, 2), 2.5))
    action = np.array([0.2, 0.9]).reshape(1, 2, 1, 1)
    found = estimated_density(np.broadcast_to(weights, (1, 2, 2)), same, action)
    assert not found.known.any()
    assert not np.isnan(found.error).any()


# Mixtures of conditional distributions: as a table, and by rejection


def table_of(probabilities, prior):
    rows = np.array(probabilities, dtype=np.float64)
    levels = np.arange(rows.shape[-2], dtype=np.float64)
    prior = np.array(prior, dtype=np.float64)
    return Table(rows, levels, prior, np.zeros_like(prior))


@given(
    st.lists(st.tuples(*[st.integers(0, 9)] * 3), min_size=2, max_size=5),
    st.tuples(*[st.integers(-8, 8)] * 3),
)
def test_mixture_clips_and_normalizes_the_weighted_sum(columns, weights):
    counts = np.array(columns, dtype=np.float64).T + 0.25
    table = table_of(counts / counts.sum(axis=1, keepdims=True), [0.2, 0.3, 0.5])
    mass = [
        max(sum(w * p for w, p in zip(weights, row, strict=True)), 0.0)
        for row in table.probabilities.T
    ]
    mass = np.where(np.array(mass) > 1e-12, mass, 0.0)
    expected = mass / mass.sum() if mass.sum() > 0 else np.full(len(mass), 1 / len(mass))
    found = mixture(table, np.array(weights, dtype=np.float64))
    assert np.allclose(found, expected, atol=1e-9)


def test_what_is_zero_but_for_rounding_is_zero():
    rows = [[0.1 + 0.2, 0.3, 0.4], [0.3, 0.3, 0.4]]
    found = mixture(table_of(rows, [0.5, 0.5]), np.array([1.0, -1.0]))
    assert np.allclose(found, 1 / 3)


def test_a_level_never_seen_makes_the_policy_uniform_only_if_it_carries_weight():
    table = table_of([[0.7, 0.3], [0.2, 0.8]], [1.0, 0.0])
    assert np.allclose(mixture(table, np.array([0.0, 1.0])), 0.5)
    assert np.allclose(mixture(table, np.array([1.0, 0.0])), [0.7, 0.3])
    priors = np.array([[1.0, 0.0], [0.5, 0.5]])
    both = table_of([[[0.7, 0.3], [0.2, 0.8]]] * 2, priors)
    assert unseen(both, np.ones((2, 2))).tolist() == [True, False]


MIXED = {
    **WEIGHTS,
    "clipped hard": (-9.0, 10.0),
    "three levels, two negative": (-0.3, 2.0, -0.5),
    "three levels, all positive": (0.2, 0.5, 0.3),
}


def listed(probabilities):
    """The belief with these tables of probabilities ``[R, n, L, M]``."""
    replicas, rows, levels, size = probabilities.shape
    rewards = np.tile(np.arange(float(levels)), (replicas, 1))
    prior = np.full((replicas, rows, levels), 1 / levels)
    return TabularBelief(Arms(size), rewards, prior, probabilities)


@pytest.mark.parametrize("weights", MIXED.values(), ids=MIXED)
@pytest.mark.parametrize("size", [2, 7])
def test_draws_follow_the_listed_mixture(weights, size, seed):
    rng = np.random.default_rng((seed, size))
    tables = rng.dirichlet(np.ones(size), size=(2, 3, len(weights)))
    belief = listed(np.tile(tables, (1, 1500, 1, 1)))
    # Every table has weights of its own.
    own = np.stack([np.roll(weights, one) for one in range(3)])
    every = np.tile(own, (2, 1500, 1))
    action, exhausted = rejection(every, belief, rng)
    assert action.shape == (2, 4500, 1)
    prior = belief.level_prior()
    table = Table(belief.prob_of_all(), belief.levels()[:, None], prior, prior)
    expected = mixture(table, every)
    for replica in range(2):
        for one in range(3):
            drawn = ~exhausted[replica, one::3]
            found = action[replica, one::3, 0][drawn]
            assert goodness_of_fit(found, expected[replica, one]) > SMALLEST_P_VALUE
            # What remains of the positive part is the chance of every proposal.
            mixed = own[one] @ tables[replica, one]
            share = np.maximum(mixed, 0).sum() / np.maximum(own[one], 0).sum()
            none = (1 - share) ** LIMIT
            limit = 1500 * none + 7 * np.sqrt(1500 * none) + 2
            assert (~drawn).sum() <= limit


@pytest.mark.parametrize("weights", [[-1.0, 1.0], [0.0, 0.0], [-1.0, -2.0], [-1.0, 0.0]])
def test_where_nothing_is_left_every_row_is_exhausted(weights, seed):
    rng = np.random.default_rng(seed)
    for size in (1, 5):
        # Both levels are equal.
        table = rng.dirichlet(np.ones(size), size=(2, 3, 1))
        belief = listed(np.repeat(table, 2, axis=2))
        action, exhausted = rejection(np.tile(weights, (2, 3, 1)), belief, rng)
        assert action.shape == (2, 3, 1)
        assert np.all(exhausted)
