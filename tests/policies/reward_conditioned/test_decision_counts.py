from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submax.core.contracts.feedback import Feedback
from submax.policies.reward_conditioned.decision_counts import DecisionCounts
from submax.simulation.batch_flush import BatchFlush
from submax.simulation.lag import Lag


def back(weight):
    weight = np.array(weight, dtype=np.float64)
    shape = weight.shape
    action = np.zeros((*shape, 1), np.int64)
    return Feedback(np.zeros((*shape, 0)), action, np.zeros(shape), None, weight)


def test_before_the_first_decision_it_expects_one_at_a_time():
    received, waiting, batch = DecisionCounts.none(3)
    assert received.tolist() == waiting.tolist() == [0, 0, 0]
    assert batch.tolist() == [1, 1, 1]


@pytest.mark.parametrize("size", [1, 4, 100])
def test_in_batches_it_is_their_size(size):
    counts = DecisionCounts.none(2)
    for number, step in enumerate(BatchFlush(size).schedule(3 * size), start=1):
        counts = counts.after_decisions(step.decide).after_feedback(
            back(np.ones((2, step.receive)))
        )
        assert counts.batch.tolist() == [size, size]
        assert counts.received.tolist() == [number * size] * 2
        assert counts.waiting.tolist() == [0, 0]


@pytest.mark.parametrize("steps", [0, 1, 30])
def test_with_a_lag_it_is_those_under_way_and_the_one_that_came(steps):
    counts = DecisionCounts.none(1)
    for number, step in enumerate(Lag(steps).schedule(steps + 20), start=1):
        counts = counts.after_decisions(step.decide).after_feedback(
            back(np.ones((1, step.receive)))
        )
        assert counts.batch.item() == steps + 1
        assert counts.waiting.item() == steps
        assert counts.received.item() == number


def test_decisions_alone_change_nothing_but_what_is_awaited():
    counts = DecisionCounts(np.array([3.0]), np.array([1.0]), np.array([5.0]))
    assert counts.after_decisions(7) == (counts.received, 8.0, counts.batch)


@pytest.mark.parametrize("weight", [np.zeros((2, 0)), np.zeros((2, 3))], ids=["none", "padding"])
def test_where_nothing_came_back_it_stays(weight):
    counts = DecisionCounts(np.array([3.0, 0.0]), np.array([1.0, 2.0]), np.array([5.0, 1.0]))
    for before, after in zip(counts, counts.after_feedback(back(weight)), strict=True):
        assert np.array_equal(before, after)


def test_rewards_of_decisions_no_one_recorded_count_as_well():
    counts = DecisionCounts.none(1).after_decisions(2).after_feedback(back(np.ones((1, 10))))
    assert (counts.received.item(), counts.waiting.item(), counts.batch.item()) == (10, 0, 10)


def test_replicas_whose_rewards_come_at_different_times():
    counts = (
        DecisionCounts.none(3)
        .after_decisions(4)
        .after_feedback(back([[1.0, 0.5, 2.0], [0.0, 1.0, 0.0], [0.0] * 3]))
    )
    assert counts.received.tolist() == [3, 1, 0]
    assert counts.waiting.tolist() == [1, 3, 4]
    assert counts.batch.tolist() == [4, 4, 1]


@given(steps=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 12)), max_size=20))
def test_it_counts_as_a_queue_does(steps):
    counts, queue, received, batch = DecisionCounts.none(1), deque(), 0, 1
    for decide, receive in steps:
        queue.extend(range(decide))
        for _ in range(min(receive, len(queue))):
            queue.popleft()
        received += receive
        batch = receive + len(queue) if receive else batch
        counts = counts.after_decisions(decide).after_feedback(back(np.ones((1, receive))))
        assert [part.item() for part in counts] == [received, len(queue), batch]


def test_what_was_is_not_touched():
    counts = DecisionCounts.none(2)
    counts.after_decisions(3).after_feedback(back(np.ones((2, 2))))
    assert [part.tolist() for part in counts] == [[0, 0], [0, 0], [1, 1]]
