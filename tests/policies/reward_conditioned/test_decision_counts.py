from collections import deque

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from submax.core.contracts.feedback import Feedback
from submax.policies.reward_conditioned.decision_counts import DecisionCounts


def back(weight):
    weight = np.array(weight, dtype=np.float64)
    shape = weight.shape
    action = np.zeros((*shape, 1), np.int64)
    return Feedback(np.zeros((*shape, 0)), action, np.zeros(shape), None, weight)


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
