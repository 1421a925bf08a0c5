import numpy as np
import pytest

from submax.evaluation.parts.moments import Moments, two_points


def test_sums_of_parts_have_the_cumulants_of_combinations(seed):
    table = np.random.default_rng(seed).gamma(1.0, size=(50, 4))
    table[:, 1] = 1.0
    weights = np.array([1.0, 3.0, -2.0, 0.5])
    parts = [(one[:, 0], None, one[:, 2], one[:, 3]) for one in (table[:20], table[20:])]
    found = (Moments.of(parts[0], 20) + Moments.of(parts[1], 30)).central(weights)
    combined = table @ weights
    distance = combined - combined.mean()
    expected = [combined.mean(), (distance**2).mean(), (distance**3).mean()]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("third", [0.0, 1e-3, -5.0, 1e9])
def test_two_points_have_the_cumulants(third):
    values, chance = two_points(3.0, 2.0, third)
    distance = values - 3.0
    assert chance.sum() == pytest.approx(1.0)
    assert chance @ distance == pytest.approx(0.0, abs=1e-6)
    assert chance @ distance**2 == pytest.approx(2.0)
    assert chance @ distance**3 == pytest.approx(third, rel=1e-6, abs=1e-9)
