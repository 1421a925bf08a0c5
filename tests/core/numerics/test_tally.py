import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from submax.core.numerics.tally import tally


@given(
    st.integers(1, 3),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), max_size=12),
    st.randoms(use_true_random=False),
)
def test_tally_is_a_sum_for_each_replica(replicas, pairs, random):
    rows = [random.sample(pairs, len(pairs)) for _ in range(replicas)]
    index = np.array([[pair[0] for pair in row] for row in rows], dtype=np.int64)
    weight = np.array([[pair[1] / 2 for pair in row] for row in rows], dtype=np.float64)
    expected = np.zeros((replicas, 5))
    for replica, row in enumerate(rows):
        for place, halves in row:
            expected[replica, place] += halves / 2
    found = tally(index.reshape(replicas, -1), weight.reshape(replicas, -1), 5)
    assert np.array_equal(found, expected)


def test_a_row_that_is_not_there_may_hold_any_index():
    index = np.array([[1, -1, 7], [0, 5, 1]])
    weight = np.array([[1.0, 0.0, 0.0], [2.0, 0.0, 0.5]])
    assert tally(index, weight, 2).tolist() == [[0.0, 1.0], [2.0, 0.5]]
