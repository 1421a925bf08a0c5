import numpy as np
import pytest

from submax.core.contracts.problem import Problem
from submax.core.memory.buffer import Buffer
from submax.core.memory.memory import Memory
from submax.core.rewards.discrete import Discrete
from submax.core.spaces.arms import Arms
from submax.core.spaces.slots import Slots
from submax.testing.rules.examples import rows_of, some_feedback

PROBLEMS = (
    Problem(Arms(4)),
    Problem(Slots((2, 3)), context_width=2),
    Problem(Arms(3), context_width=1, scale=Discrete((-1.0, 0.0, 2.0))),
)


def added(buffer, feedback):
    """With a memory for everything, nothing is drawn."""
    return buffer.add(feedback, Memory(), None)


def reward_encoding(problem, replicas):
    return problem.scale.reward_encoding(np.zeros((replicas, 0)), np.zeros((replicas, 0)))


def slow(pieces, replica):
    """The rows of one replica, one after the other."""
    rows = []
    for piece in pieces:
        for row in np.flatnonzero(piece.weight[replica]):
            place = replica, row
            log_prob = np.nan if piece.log_prob is None else piece.log_prob[place]
            given = piece.context[place], piece.action[place], piece.reward[place]
            rows.append((*given, log_prob, piece.weight[place], 0.0))
    return rows


def with_weights(feedback, seed):
    rng = np.random.default_rng((seed, 3))
    return feedback._replace(weight=rng.choice([0.0, 0.5, 2.0], size=feedback.weight.shape))


@pytest.mark.parametrize("problem", PROBLEMS, ids=repr)
def test_it_keeps_what_a_list_keeps(problem, seed):
    feedback = with_weights(some_feedback(problem, 3, 30, seed), seed)
    # A replica that has nothing in a piece, and one that never has anything.
    feedback.weight[1, :10] = 0.0
    feedback.weight[2] = 0.0
    pieces = [rows_of(feedback, slice(first, first + 10)) for first in (0, 10, 20)]
    pieces[1] = pieces[1]._replace(log_prob=None)
    buffer = Buffer.empty(problem, 3)
    for piece in pieces:
        buffer = added(buffer, piece)
    assert buffer.reward.shape[1] == buffer.filled.max()
    for replica in range(3):
        expected = slow(pieces, replica)
        assert buffer.filled[replica] == len(expected)
        for place, row in enumerate(expected):
            for array, value in zip(buffer[:-1], row, strict=True):
                np.testing.assert_array_equal(array[replica, place], value)
        for array in buffer[:-1]:
            assert not np.any(array[replica, len(expected) :])


def test_level_shares_are_shares_of_the_weight(seed):
    problem = PROBLEMS[2]
    feedback = with_weights(some_feedback(problem, 3, 25, seed), seed)
    feedback.weight[2] = 0.0
    share = added(Buffer.empty(problem, 3), feedback).level_share(reward_encoding(problem, 3))
    for replica in range(2):
        mass = [0.0, 0.0, 0.0]
        for _, _, reward, _, weight, _ in slow([feedback], replica):
            mass[problem.scale.values.index(reward)] += weight
        np.testing.assert_allclose(share[replica], np.array(mass) / sum(mass))
    assert np.array_equal(share[2], np.full(3, 1 / 3))


def test_contexts_keep_the_precision_they_were_given_in(seed):
    problem = PROBLEMS[0]
    exact = some_feedback(problem, 2, 5, seed)
    short = exact._replace(context=exact.context.astype(np.float32))
    for given in (exact, short):
        buffer = added(Buffer.empty(problem, 2), given)
        assert buffer.context.dtype == given.context.dtype
        np.testing.assert_array_equal(buffer.context, given.context)
    both = added(added(Buffer.empty(problem, 2), short), exact)
    assert both.context.dtype == np.float64
    np.testing.assert_array_equal(both.context[:, :5], short.context)
    np.testing.assert_array_equal(both.context[:, 5:], exact.context)
