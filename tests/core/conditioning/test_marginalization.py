import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from submax.core.conditioning.marginalization import mixture, normalized, unseen
from submax.core.conditioning.table import Table


def table_of(probabilities, prior):
    rows = np.array(probabilities, dtype=np.float64)
    levels = np.arange(rows.shape[-2], dtype=np.float64)
    prior = np.array(prior, dtype=np.float64)
    return Table(rows, levels, prior, np.zeros_like(prior))


def test_mixture_by_hand_with_three_levels():
    table = table_of([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5], [0.1, 0.6, 0.3]], [0.5, 0.3, 0.2])
    found = mixture(table, np.array([-0.5, 0.5, 1.0]))
    # (−0.25 + 0.1 + 0.1, −0.25 + 0.15 + 0.6, 0.25 + 0.3)
    assert np.allclose(found, np.array([0.0, 0.5, 0.55]) / 1.05)


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


def test_normalized_falls_back_row_by_row():
    mass = np.array([[2.0, 6.0], [0.0, 0.0], [1.0, 0.0]])
    found = normalized(mass, forget=np.array([False, False, True]))
    assert found.tolist() == [[0.25, 0.75], [0.5, 0.5], [0.5, 0.5]]
