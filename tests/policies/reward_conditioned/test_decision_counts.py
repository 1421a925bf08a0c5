from collections import deque

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from submax import Feedback
from submax.policies.reward_conditioned.decision_counts import DecisionCounts


def back(weight):
    weight = np.array(weight, dtype=np.float64)
    shape = weight.shape
    action = np.zeros((*shape, 1), np.int64)
    return Feedback(np.zeros((*shape, 0)), action, np.zeros(shape), None, weight)


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
