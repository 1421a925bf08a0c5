import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from submax.policies.classic.bernoulli_divergence import divergence, upper_bound

means = st.floats(0, 1)


@given(mean=means, other=st.floats(1e-6, 1 - 1e-6))
def test_the_divergence_is_an_expectation(mean, other):
    expected = sum(
        p * np.log(p / q) for p, q in ((mean, other), (1 - mean, 1 - other)) if p > 1e-300
    )
    assert np.isclose(divergence(np.array(mean), np.array(other)), expected, atol=1e-12)


@given(mean=st.floats(0, 0.999), level=st.floats(0, 20))
def test_the_bound_is_where_the_divergence_reaches_the_level(mean, level):
    found = float(upper_bound(np.array(mean), np.array(level)))
    assert mean <= found <= 1

    def excess(q):
        return float(divergence(np.array(mean), np.array(q))) - level

    highest = 1 - 1e-15
    if excess(highest) <= 0:
        assert found >= highest - 1e-9
    elif level > 0:
        assert abs(found - optimize.brentq(excess, mean, highest, xtol=1e-15)) < 1e-7


def test_a_mean_of_one_is_its_own_bound():
    assert upper_bound(np.array([1.0, 1.0]), np.array([0.0, 5.0])).tolist() == [1.0, 1.0]
