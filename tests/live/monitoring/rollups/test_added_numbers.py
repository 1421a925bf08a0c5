"""Sums by cell have the bits that a loop over the rows gives."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from submax.live.monitoring.rollups.added_numbers import AddedNumbers

COLUMNS = st.one_of(
    st.just([0.0]),
    st.just([1.0]),
    st.sampled_from([[0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.1, -0.3], [0.0, -0.0, 2.0**60]]),
    st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=6),
    st.just([np.inf, 0.0, 0.0, 1.0]),
)


@given(
    st.integers(0, 60),
    st.lists(COLUMNS, min_size=1, max_size=3),
    st.sampled_from([0.0, 3.0, 0.1, 1e17]),
    st.integers(0, 2**32),
)
def test_sums_are_those_of_a_loop(count, columns, before, seed):
    rng = np.random.default_rng(seed)
    table = np.stack([rng.choice(one, count) for one in columns], axis=1)
    cell = rng.integers(4, size=count)
    expected = np.full((4, len(columns)), before)
    found = AddedNumbers(table.T).added_to(expected.copy(), cell)
    for place, row in zip(cell.tolist(), table, strict=True):
        expected[place] += row
    assert found.tobytes() == expected.tobytes()


def test_some_rows_and_columns_are_taken():
    numbers = AddedNumbers(np.array([[1.0, 2.0, 3.0], [0.0, 0.5, 0.0]]))
    taken = numbers.take(np.array([True, False, True]))
    assert taken.added_to(np.zeros((1, 2)), np.zeros(2, np.int64)).tolist() == [[4.0, 0.0]]
    chosen = numbers.select([1])
    assert chosen.added_to(np.zeros((2, 1)), np.array([0, 1, 1])).tolist() == [[0.0], [0.5]]
    assert chosen.table.tolist() == [[0.0, 0.5, 0.0]]
