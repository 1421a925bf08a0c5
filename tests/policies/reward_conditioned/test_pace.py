from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submax.core.contracts.feedback import Feedback
from submax.policies.reward_conditioned.pace import Pace
from submax.simulation.batch_flush import BatchFlush
from submax.simulation.lag import Lag


def back(weight):
    weight = np.array(weight, dtype=np.float64)
    shape = weight.shape
    action = np.zeros((*shape, 1), np.int64)
    return Feedback(np.zeros((*shape, 0)), action, np.zeros(shape), None, weight)


def test_before_the_first_decision_it_expects_one_at_a_time():
    received, waiting, batch = Pace.unknown(3)
    assert received.tolist() == waiting.tolist() == [0, 0, 0]
    assert batch.tolist() == [1, 1, 1]


@pytest.mark.parametrize("size", [1, 4, 100])
def test_in_batches_it_is_their_size(size):
    pace = Pace.unknown(2)
    for number, step in enumerate(BatchFlush(size).schedule(3 * size), start=1):
        pace = pace.taking(step.decide).after(back(np.ones((2, step.receive))))
        assert pace.batch.tolist() == [size, size]
        assert pace.received.tolist() == [number * size] * 2
        assert pace.waiting.tolist() == [0, 0]


@pytest.mark.parametrize("steps", [0, 1, 30])
def test_with_a_lag_it_is_those_under_way_and_the_one_that_came(steps):
    pace = Pace.unknown(1)
    for number, step in enumerate(Lag(steps).schedule(steps + 20), start=1):
        pace = pace.taking(step.decide).after(back(np.ones((1, step.receive))))
        assert pace.batch.item() == steps + 1
        assert pace.waiting.item() == steps
        assert pace.received.item() == number


def test_decisions_alone_change_nothing_but_what_is_awaited():
    pace = Pace(np.array([3.0]), np.array([1.0]), np.array([5.0]))
    assert pace.taking(7) == (pace.received, 8.0, pace.batch)


@pytest.mark.parametrize("weight", [np.zeros((2, 0)), np.zeros((2, 3))], ids=["none", "padding"])
def test_where_nothing_came_back_it_stays(weight):
    pace = Pace(np.array([3.0, 0.0]), np.array([1.0, 2.0]), np.array([5.0, 1.0]))
    for before, after in zip(pace, pace.after(back(weight)), strict=True):
        assert np.array_equal(before, after)


def test_rewards_of_decisions_no_one_recorded_count_as_well():
    pace = Pace.unknown(1).taking(2).after(back(np.ones((1, 10))))
    assert (pace.received.item(), pace.waiting.item(), pace.batch.item()) == (10, 0, 10)


def test_replicas_whose_rewards_come_at_different_times():
    pace = Pace.unknown(3).taking(4).after(back([[1.0, 0.5, 2.0], [0.0, 1.0, 0.0], [0.0] * 3]))
    assert pace.received.tolist() == [3, 1, 0]
    assert pace.waiting.tolist() == [1, 3, 4]
    assert pace.batch.tolist() == [4, 4, 1]


@given(steps=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 12)), max_size=20))
def test_it_counts_as_a_queue_does(steps):
    pace, queue, received, batch = Pace.unknown(1), deque(), 0, 1
    for decide, receive in steps:
        queue.extend(range(decide))
        for _ in range(min(receive, len(queue))):
            queue.popleft()
        received += receive
        batch = receive + len(queue) if receive else batch
        pace = pace.taking(decide).after(back(np.ones((1, receive))))
        assert [part.item() for part in pace] == [received, len(queue), batch]


def test_what_was_is_not_touched():
    pace = Pace.unknown(2)
    pace.taking(3).after(back(np.ones((2, 2))))
    assert [part.tolist() for part in pace] == [[0, 0], [0, 0], [1, 1]]
