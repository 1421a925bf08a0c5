import numpy as np
import pytest

from submax.core.contracts.problem import Problem
from submax.core.memory.buffer import Buffer
from submax.core.memory.memory import Memory
from submax.core.memory.minibatches import Minibatches
from submax.core.spaces.slots import Slots
from submax.testing.rules.examples import some_feedback
from submax.testing.rules.goodness_of_fit import SMALLEST_P_VALUE, goodness_of_fit

PROBLEM = Problem(Slots((2, 3)), context_width=2)


def numbered(filled):
    """A buffer in which the first context number of a row says which replica and row it is."""
    replicas, rows = len(filled), max(filled)
    feedback = some_feedback(PROBLEM, replicas, rows, 0)
    number = 1000 * np.arange(replicas)[:, None] + np.arange(rows)
    feedback.context[..., 0] = number
    weight = (np.arange(rows) < np.array(filled)[:, None]).astype(float)
    return added(Buffer.empty(PROBLEM, replicas), feedback._replace(weight=weight))


def added(buffer, feedback):
    return buffer.add(feedback, Memory(), None)


def laid_out(buffer):
    """With the reward itself as what a network is told of it."""
    return Minibatches.of(buffer, buffer.action, buffer.reward[..., None])


def test_a_drawn_row_is_a_row_of_the_buffer_as_it_stands_there(seed):
    buffer = numbered([7, 3])
    rows = laid_out(buffer).draw(5, 6, np.random.default_rng(seed))
    assert rows.shape == (5, 2, 6, 2 + 2 + 2)
    assert rows.dtype == np.float32
    for step in range(5):
        for replica in range(2):
            for drawn in rows[step, replica]:
                place = int(drawn[0]) - 1000 * replica
                assert np.array_equal(drawn[:2], buffer.context[replica, place].astype(np.float32))
                assert np.array_equal(drawn[2:4], buffer.action[replica, place])
                assert drawn[4] == buffer.reward[replica, place]
                assert drawn[5] == buffer.weight[replica, place] == 1.0


@pytest.mark.parametrize("filled", [[1, 1, 1], [2, 9, 5], [40, 1, 17]])
def test_every_row_is_drawn_equally_often_and_only_by_its_replica(filled, seed):
    rng = np.random.default_rng((seed, *filled))
    rows = laid_out(numbered(filled)).draw(60, 100, rng)
    for replica, count in enumerate(filled):
        place = rows[:, replica, :, 0].astype(int) - 1000 * replica
        assert place.min() >= 0
        assert place.max() < count
        assert goodness_of_fit(place, np.full(count, 1 / count)) > SMALLEST_P_VALUE


class AlmostOne:
    """A generator whose every number is the largest float32 below one."""

    def random(self, shape, dtype):
        return np.full(shape, np.nextafter(np.float32(1), np.float32(0)), dtype=dtype)


@pytest.mark.parametrize("rows", [1, 3, 1000, 2**20 + 1])
def test_the_largest_uniform_number_draws_the_last_row(rows):
    # float32 counts of this size times the number just below one round up to the count.
    table = np.repeat(np.arange(2 * rows, dtype=np.float32)[:, None], 3, axis=1)
    drawn = Minibatches(table, np.array([rows, rows])).draw(1, 1, AlmostOne())
    assert drawn[0, 0, 0, 0] == rows - 1
    assert drawn[0, 1, 0, 0] == 2 * rows - 1


def test_the_share_of_each_reward_counts_weights_and_one_row_more():
    table = np.array(
        [
            [9, 1, 0, 2.0],
            [9, 0, 1, 1.0],
            [9, np.nan, np.nan, 0.0],
            [9, 0, 1, 3.0],
            [0] * 4,
            [0] * 4,
        ],
        dtype=np.float32,
    )
    share = Minibatches(table, np.array([3, 1])).reward_share(2)
    np.testing.assert_allclose(share, [[2.5 / 4, 1.5 / 4], [0.5 / 4, 3.5 / 4]])
    empty = Minibatches(np.zeros((4, 3), np.float32), np.zeros(2, np.int64)).reward_share(1)
    np.testing.assert_allclose(empty, [[0.5], [0.5]])
