"""The chance of each of several independent variables to be the largest."""

import itertools

import numpy as np
import pytest
from scipy import integrate, special

from submax.policies.thompson import largest_beta
from submax.research.rivals.neural import largest_normal

TOLERANCE = 1e-8


def by_quad(edges, densities, distributions):
    """P(k) = ∫ f_k Π_{j≠k} F_j, piece by piece; both functions return all variables at a point."""
    # Pieces that are no wider than rounding upset the quadrature.
    edges = edges[np.diff(edges, prepend=-np.inf) > 1e-6]
    result = []
    for own in range(len(densities(0.0))):

        def integrand(t, own=own):
            return densities(t)[own] * np.prod(np.delete(distributions(t), own))

        # With full output the quadrature reports what it cannot reach instead of warning.
        pieces = [
            integrate.quad(integrand, low, high, epsabs=1e-11, epsrel=0, full_output=1)[:2]
            for low, high in itertools.pairwise(edges)
        ]
        value, error = np.sum(pieces, axis=0)
        assert error < TOLERANCE / 2
        result.append(value)
    return np.array(result)


def betas_by_quad(a, b):
    """Over the logit, between quantiles of all variables, exact at both ends."""
    share = np.array([1e-12, 1e-9, 1e-6, 1e-3, 0.03, 0.2, 0.5])[:, None]
    below = special.logit(special.betaincinv(a, b, share))
    above = -special.logit(special.betaincinv(b, a, share))

    def densities(logit):
        log_density = a * special.log_expit(logit) + b * special.log_expit(-logit)
        return np.exp(log_density - special.betaln(a, b))

    return by_quad(
        np.unique([below, above]), densities, lambda x: special.betainc(a, b, special.expit(x))
    )


def normals_by_quad(mean, deviation):
    places = np.array([-9, -5, -3, -1, 0, 1, 3, 5, 9])[:, None]

    def densities(t):
        return np.exp(-(((t - mean) / deviation) ** 2) / 2) / np.sqrt(2 * np.pi) / deviation

    return by_quad(
        np.unique(mean + deviation * places),
        densities,
        lambda t: special.ndtr((t - mean) / deviation),
    )


def wide_range(rng, size):
    return np.exp(rng.uniform(np.log(0.3), np.log(1e4), size=size))


@pytest.mark.parametrize("arms", [2, 3, 5])
def test_betas_agree_with_adaptive_quadrature_over_a_wide_range(arms, seed):
    rng = np.random.default_rng((seed, arms))
    a, b = wide_range(rng, (3, arms)), wide_range(rng, (3, arms))
    expected = [betas_by_quad(*row) for row in zip(a, b, strict=True)]
    np.testing.assert_allclose(largest_beta(a, b), expected, rtol=0, atol=TOLERANCE)


# The last are more than fit one chunk.
@pytest.mark.parametrize(("rows", "arms"), [(5, 1), (5, 2), (5, 10), (5, 100), (30, 600)])
def test_powers_of_uniform_numbers_have_a_closed_form(rows, arms, seed):
    # Beta(a, 1) is U^{1/a}: the chance to be the largest is a over the sum of all a.
    a = wide_range(np.random.default_rng((seed, arms)), (rows, arms))
    expected = a / a.sum(axis=1, keepdims=True)
    error = np.abs(largest_beta(a, np.ones_like(a)) - expected).sum(axis=1) / 2
    assert np.all(error < TOLERANCE)


def test_probabilities_sum_to_one_and_rows_do_not_meet(seed):
    rng = np.random.default_rng(seed)
    a, b = wide_range(rng, (50, 6)), wide_range(rng, (50, 6))
    together = largest_beta(a, b)
    assert np.all(together >= 0)
    order = rng.permutation(6)
    alone = np.concatenate([largest_beta(*row) for row in zip(a[:, None], b[:, None], strict=True)])
    for found, expected in (
        (together.sum(axis=1), 1),
        (largest_beta(a[:, order], b[:, order]), together[:, order]),
        (alone, together),
    ):
        np.testing.assert_allclose(found, np.broadcast_to(expected, found.shape), 0, 1e-12)


@pytest.mark.parametrize("arms", [2, 3, 6])
@pytest.mark.parametrize("decades", [0, 2, 5])
def test_normals_agree_with_adaptive_quadrature(arms, decades, seed):
    rng = np.random.default_rng((seed, arms, decades))
    deviation = 10 ** rng.uniform(-decades, 0, size=(3, arms))
    mean = rng.normal(size=(3, arms)) * deviation.max(axis=1, keepdims=True) / 2
    expected = [normals_by_quad(*row) for row in zip(mean, deviation, strict=True)]
    np.testing.assert_allclose(largest_normal(mean, deviation), expected, rtol=0, atol=TOLERANCE)


def test_two_normals_have_a_closed_form(seed):
    # X₁ − X₂ is normal: P(1) = Φ((μ₁ − μ₂) / √(σ₁² + σ₂²)).
    rng = np.random.default_rng(seed)
    deviation = 10 ** rng.uniform(-9, 3, size=(400, 2))
    total = np.hypot(deviation[:, 0], deviation[:, 1])
    mean = np.stack([rng.normal(size=400) * 2 * total, np.zeros(400)], axis=1)
    first = special.ndtr(mean[:, 0] / total)
    expected = np.stack([first, 1 - first], axis=1)
    np.testing.assert_allclose(largest_normal(mean, deviation), expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("arms", [1, 2, 300, 5000])
@pytest.mark.parametrize("deviation", [1e-12, 1.0, 1e6])
def test_equal_normals_share_equally(arms, deviation):
    found = largest_normal(np.full((2, arms), 3.0), np.full((2, arms), deviation))
    np.testing.assert_allclose(found, 1 / arms, rtol=1e-9)
