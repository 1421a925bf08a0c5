from collections import deque

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from submax import Feedback
from submax.policies.reward_conditioned import DecisionCounts


def back(weight):
    weight = np.array(weight, dtype=np.float64)
    shape = weight.shape
    action = np.zeros((*shape, 1), np.int64)
    return Feedback(np.zeros((*shape, 0)), action, np.zeros(shape), None, weight)


receives = st.integers(0, 12)


@given(steps=st.lists(st.tuples(st.integers(0, 9), receives, receives), max_size=20))
def test_it_counts_as_a_queue_of_each_replica_does(steps):
    counts = DecisionCounts.none(2)
    queues, received, batch = (deque(), deque()), [0, 0], [1, 1]
    for decide, *receive in steps:
        weight = np.zeros((2, 12))
        for replica, (queue, rows) in enumerate(zip(queues, receive, strict=True)):
            queue.extend(range(decide))
            for _ in range(min(rows, len(queue))):
                queue.popleft()
            weight[replica, :rows] = 0.5
            received[replica] += rows
            batch[replica] = rows + len(queue) if rows else batch[replica]
        counts = counts._replace(waiting=counts.waiting + decide).after_feedback(back(weight))
        waiting = [len(queue) for queue in queues]
        assert [part.tolist() for part in counts] == [received, waiting, batch]
