import math

import numpy as np
import pytest
from scipy.integrate import quad

from submax.statistics.boundary import log_mixture, mixture_boundary


@pytest.mark.parametrize("scale", [0.5, 3.0])
@pytest.mark.parametrize("variance", [0.0, 1.0, 40.0])
@pytest.mark.parametrize("deviation", [0.0, 2.0, 15.0])
def test_the_mixture_is_the_integral_of_its_supermartingales(deviation, variance, scale):
    mixing = 4.0

    def cumulant(size):
        return (-math.log1p(-scale * size) - scale * size) / scale**2

    def density(size):
        left = 1 - scale * size
        return left ** (mixing / scale**2 - 1) * math.exp(-mixing * left / scale**2)

    def mixed(size):
        return density(size) * math.exp(size * deviation - cumulant(size) * variance)

    end = 1 / scale
    expected = quad(mixed, 0, end, epsabs=0)[0] / quad(density, 0, end, epsabs=0)[0]
    assert log_mixture(deviation, variance, scale, mixing) == pytest.approx(
        math.log(expected), abs=1e-6
    )


def test_the_boundary_is_where_the_mixture_reaches_its_limit():
    found = mixture_boundary(variance=30.0, error=0.1, scale=2.0, tightest_at=50.0)
    limit = 2 * math.log(10)
    mixing = 50.0 / (limit + math.log(1 + limit))
    assert log_mixture(found, 30.0, 2.0, mixing) == pytest.approx(math.log(20))


def test_small_scales_approach_the_normal_mixture():
    normal = mixture_boundary(100.0, 0.05, 0.0, 100.0)
    assert mixture_boundary(100.0, 0.05, 1e-3, 100.0) == pytest.approx(normal, rel=0.02)
    assert mixture_boundary(100.0, 0.05, 3.0, 100.0) > normal


def test_the_boundary_is_narrowest_where_it_was_asked_to_be():
    variances = np.geomspace(1, 1e6, 200)
    relative = [mixture_boundary(one, 0.05, 0.0, 1e3) / math.sqrt(one) for one in variances]
    assert 500 < variances[int(np.argmin(relative))] < 2000


@pytest.mark.parametrize("scale", [0.0, 1.0])
def test_walks_leave_the_boundary_as_rarely_as_it_says(scale, seed):
    error, walks, steps = 0.1, 1000, 2000
    rng = np.random.default_rng(seed)
    increments = rng.choice([-1.0, 1.0], size=(walks, steps))
    sums = np.abs(np.cumsum(increments, axis=1))
    # The sum of squares of these increments is the number of steps.
    boundary = [mixture_boundary(step, error, scale, 100.0) for step in range(1, steps + 1)]
    left = (sums >= np.array(boundary)).any(axis=1).mean()
    assert left <= error + 4 * math.sqrt(error * (1 - error) / walks)
