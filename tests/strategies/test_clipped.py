import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from submax.strategies.clipped import Clipped
from submax.strategies.optimistic import Optimistic
from submax.strategies.optimized import Optimized, bounds
from submax.strategies.submax import SubMax


def test_by_hand(small_table):
    # 2 p₁ − p₀ = (−0.2, 0.5, 0.7)
    assert np.allclose(Clipped(2.0).probabilities(small_table), [0.0, 5 / 12, 7 / 12])
    # (p₀ + p₁) / 2
    assert np.allclose(Clipped(0.5).probabilities(small_table), [0.4, 0.35, 0.25])
    assert np.allclose(Clipped(0.0).probabilities(small_table), [0.6, 0.3, 0.1])


@given(data=st.data())
def test_one_is_optimistic(tables, data):
    table = data.draw(tables)
    assert np.allclose(Clipped(1.0).probabilities(table), Optimistic().probabilities(table))


@given(data=st.data(), power=st.integers(3, 9))
def test_the_limit_is_submax(tables, data, power):
    table = data.draw(tables)
    gained = np.maximum(table.probabilities[1] - table.probabilities[0], 0).sum()
    assume(gained > 0.01)
    weight = 10.0**power
    distance = np.abs(Clipped(weight).probabilities(table) - SubMax().probabilities(table)).sum()
    # What λ (p₁ − p₀) + p₀ has beside the first part is one in all, against λ times the gain.
    assert distance <= 2 / (weight * gained) + 1e-12


@given(data=st.data())
def test_at_the_highest_bound_it_is_optimized_and_clips_nothing(tables, data):
    table = data.draw(tables)
    low, high = table.probabilities
    highest = float(bounds(low, high).highest)
    assert np.allclose(
        Clipped(highest).probabilities(table), Optimized().probabilities(table), atol=1e-9
    )
    assert np.min((1 - highest) * low + highest * high) > -1e-12
