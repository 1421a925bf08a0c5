import itertools

import numpy as np
import pytest
from scipy import integrate, special

from submax.research.rivals.neural import largest_normal

TOLERANCE = 1e-8


def by_quad(mean, deviation):
    """P(k) = ∫ f_k Π_{j≠k} F_j, piece by piece between quantiles of all variables."""
    edges = np.unique(mean + deviation * np.array([-9, -5, -3, -1, 0, 1, 3, 5, 9])[:, None])
    result = []
    for own in range(len(mean)):
        others = np.arange(len(mean)) != own

        def integrand(t, own=own, others=others):
            z = (t - mean) / deviation
            density = np.exp(-(z[own] ** 2) / 2) / np.sqrt(2 * np.pi) / deviation[own]
            return density * np.prod(special.ndtr(z[others]))

        pieces = [
            integrate.quad(integrand, low, high, epsabs=1e-11, epsrel=0, full_output=1)[:2]
            for low, high in itertools.pairwise(edges)
        ]
        value, error = np.sum(pieces, axis=0)
        assert error < TOLERANCE
        result.append(value)
    return np.array(result)


@pytest.mark.parametrize("arms", [2, 3, 6])
@pytest.mark.parametrize("decades", [0, 2, 5])
def test_it_agrees_with_adaptive_quadrature(arms, decades, seed):
    rng = np.random.default_rng((seed, arms, decades))
    deviation = 10 ** rng.uniform(-decades, 0, size=(3, arms))
    mean = rng.normal(size=(3, arms)) * deviation.max(axis=1, keepdims=True) / 2
    found = largest_normal(mean, deviation)
    for row in range(3):
        assert np.allclose(found[row], by_quad(mean[row], deviation[row]), rtol=0, atol=TOLERANCE)


def test_two_variables_have_a_closed_form(seed):
    # X₁ − X₂ is normal: P(1) = Φ((μ₁ − μ₂) / √(σ₁² + σ₂²)).
    rng = np.random.default_rng(seed)
    deviation = 10 ** rng.uniform(-9, 3, size=(400, 2))
    total = np.hypot(deviation[:, 0], deviation[:, 1])
    mean = np.stack([rng.normal(size=400) * 2 * total, np.zeros(400)], axis=1)
    expected = special.ndtr(mean[:, 0] / total)
    found = largest_normal(mean, deviation)
    assert np.allclose(found[:, 0], expected, rtol=0, atol=TOLERANCE)
    assert np.allclose(found[:, 1], 1 - expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("arms", [1, 2, 300, 5000])
@pytest.mark.parametrize("deviation", [0.0, 1e-12, 1.0, 1e6])
def test_equal_variables_share_equally(arms, deviation):
    found = largest_normal(np.full((2, arms), 3.0), np.full((2, arms), deviation))
    assert np.allclose(found, 1 / arms, rtol=1e-9, atol=0)


def test_known_numbers_win_against_what_lies_below():
    # 1 is known twice; N(0, 1) exceeds it with Φ(−1), and what is known to be 0 never does.
    found = largest_normal(np.array([1.0, 0.0, 1.0, 0.0]), np.array([0.0, 1.0, 0.0, 0.0]))
    above = special.ndtr(-1.0)
    expected = [(1 - above) / 2, above, (1 - above) / 2, 0.0]
    assert np.allclose(found, expected, rtol=0, atol=TOLERANCE)
    means, deviations = np.array([[1.0, 3.0], [-100.0, 0.0]]), np.array([[0.0, 0.0], [0.0, 1.0]])
    assert largest_normal(means, deviations).tolist() == [[0.0, 1.0], [0.0, 1.0]]
