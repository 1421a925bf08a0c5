import itertools

import numpy as np
import pytest
from scipy import integrate, special

from submax.policies.thompson import largest_beta
from submax.testing.assertions import SMALLEST_P_VALUE, goodness_of_fit

TOLERANCE = 1e-8


def quantiles(a, b):
    """Logits of quantiles from one end to the other, exact at both."""
    share = np.array([1e-12, 1e-9, 1e-6, 1e-3, 0.03, 0.2, 0.5])
    below = special.logit(special.betaincinv(a, b, share))
    above = -special.logit(special.betaincinv(b, a, share))
    return np.unique(np.concatenate([below, above]))


def by_quad(a, b):
    """P(k) = ∫ f_k Π_{j≠k} F_j over the logit, piece by piece between all quantiles."""
    marks = [quantiles(*pair) for pair in zip(a, b, strict=True)]
    result = []
    for own, (first, *_, last) in enumerate(marks):
        others = np.arange(len(a)) != own

        def integrand(logit, own=own, others=others):
            log_density = a[own] * special.log_expit(logit) + b[own] * special.log_expit(-logit)
            below = special.betainc(a[others], b[others], special.expit(logit))
            return np.exp(log_density - special.betaln(a[own], b[own])) * np.prod(below)

        edges = np.unique(np.clip(np.concatenate(marks), first, last))
        # Pieces that are no wider than rounding upset the quadrature.
        edges = edges[np.diff(edges, prepend=-np.inf) > 1e-6]
        # With full output the quadrature reports what it cannot reach instead of warning.
        pieces = [
            integrate.quad(integrand, low, high, epsabs=1e-10, epsrel=0, full_output=1)[:2]
            for low, high in itertools.pairwise(edges)
        ]
        value, error = np.sum(pieces, axis=0)
        assert error < TOLERANCE / 2
        result.append(value)
    return np.array(result)


def wide_range(rng, size):
    return np.exp(rng.uniform(np.log(0.3), np.log(1e4), size=size))


@pytest.mark.parametrize("arms", [2, 3, 5])
def test_it_agrees_with_adaptive_quadrature_over_a_wide_range(arms, seed):
    rng = np.random.default_rng((seed, arms))
    a, b = wide_range(rng, (3, arms)), wide_range(rng, (3, arms))
    found = largest_beta(a, b)
    for row in range(3):
        assert np.allclose(found[row], by_quad(a[row], b[row]), rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("arms", [2, 4])
def test_it_agrees_with_adaptive_quadrature_where_all_means_agree(arms, seed):
    rng = np.random.default_rng((seed, arms))
    mean = rng.uniform(0.05, 0.95, size=(3, 1))
    strength = np.exp(rng.uniform(0, np.log(1e4), size=(3, arms)))
    a, b = mean * strength + 0.3, (1 - mean) * strength + 0.3
    found = largest_beta(a, b)
    for row in range(3):
        assert np.allclose(found[row], by_quad(a[row], b[row]), rtol=0, atol=TOLERANCE)


# The last are more than fit one chunk.
@pytest.mark.parametrize(("rows", "arms"), [(5, 2), (5, 3), (5, 10), (5, 100), (5, 500), (30, 600)])
def test_powers_of_uniform_numbers_have_a_closed_form(rows, arms, seed):
    # Beta(a, 1) is U^{1/a}: the chance to be the largest is a over the sum of all a.
    a = wide_range(np.random.default_rng((seed, arms)), (rows, arms))
    expected = a / a.sum(axis=1, keepdims=True)
    error = np.abs(largest_beta(a, np.ones_like(a)) - expected).sum(axis=1) / 2
    assert np.all(error < TOLERANCE)


def test_two_sparse_variables_have_a_closed_form():
    # 1 − Beta(1, b) is U^{1/b}: the first is the larger with chance b₂ / (b₁ + b₂).
    grid = np.array([1.0, 2.0, 5.0, 11.0, 15.0, 17.0, 58.0, 100.0, 999.0, 1e4])
    b = np.stack([side.ravel() for side in np.meshgrid(grid, grid)], axis=1)
    expected = b[:, ::-1] / b.sum(axis=1, keepdims=True)
    assert np.allclose(largest_beta(np.ones_like(b), b), expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("arms", [1, 2, 300])
@pytest.mark.parametrize(("alpha", "beta"), [(0.3, 0.3), (1.0, 99.0), (3000.0, 7000.0)])
def test_equal_variables_share_equally(arms, alpha, beta):
    found = largest_beta(np.full((2, arms), alpha), np.full((2, arms), beta))
    assert np.allclose(found, 1 / arms, rtol=1e-12)


def test_two_leaders_among_many_have_their_chances():
    a = np.array([[55.0, 1.0] + [3.0] * 10 + [1.0] * 10])
    b = np.array([[56.0, 0.7] + [6000.0] * 10 + [9000.0] * 10])
    assert np.allclose(largest_beta(a, b)[0, :2], by_quad(a[0], b[0])[:2], rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("arms", [2, 10, 200])
def test_it_agrees_with_plain_sampling(arms, seed):
    rng = np.random.default_rng((seed, arms))
    pulls = rng.integers(0, 40, size=(2, arms))
    successes = rng.binomial(pulls, 0.2)
    a, b = 1.0 + successes, 4.0 + pulls - successes
    probabilities = largest_beta(a, b)
    for row in range(2):
        drawn = rng.beta(a[row], b[row], size=(4000, arms)).argmax(axis=1)
        assert goodness_of_fit(drawn, probabilities[row]) > SMALLEST_P_VALUE


def test_probabilities_sum_to_one_and_rows_do_not_meet(seed):
    rng = np.random.default_rng(seed)
    a, b = wide_range(rng, (50, 6)), wide_range(rng, (50, 6))
    together = largest_beta(a, b)
    assert np.all(together >= 0)
    assert np.allclose(together.sum(axis=1), 1, rtol=0, atol=1e-12)
    order = rng.permutation(6)
    found = largest_beta(a[:, order], b[:, order])
    assert np.allclose(found, together[:, order], rtol=0, atol=1e-12)
    for row in range(0, 50, 7):
        alone = largest_beta(a[row : row + 1], b[row : row + 1])
        assert np.allclose(alone[0], together[row], rtol=0, atol=1e-12)
