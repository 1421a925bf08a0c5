import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from submax.core.contracts.feedback import Feedback
from submax.simulation.pending import Pending

REPLICAS = 2


def numbered(first, rows, logged=True):
    """Every entry tells its replica and its place in the queue."""
    number = np.arange(first, first + rows) + 1000.0 * np.arange(REPLICAS)[:, None]
    return Feedback(
        context=number[..., None] + np.array([0.25, 0.5]),
        action=number[..., None].astype(np.int64),
        reward=number,
        log_prob=-number if logged else None,
        weight=number + 0.125,
    )


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.data())
def test_it_is_a_queue_of_single_decisions(sizes, data):
    pending, put, taken = Pending(), 0, 0
    for size in sizes:
        pending.put(numbered(put, size))
        put += size
        count = data.draw(st.integers(0, put - taken))
        if count:
            found = pending.take(count)
            for name, expected in numbered(taken, count)._asdict().items():
                assert np.array_equal(getattr(found, name), expected)
            taken += count


def test_one_block_without_probabilities_leaves_the_whole_without():
    pending = Pending()
    pending.put(numbered(0, 3))
    pending.put(numbered(3, 3, logged=False))
    assert np.array_equal(pending.take(2).log_prob, -numbered(0, 2).reward)
    both = pending.take(3)
    assert both.log_prob is None
    assert np.array_equal(both.reward, numbered(2, 3).reward)
