import numpy as np
import pytest

from submax.core.contracts.problem import Problem
from submax.core.memory.buffer import Buffer
from submax.core.memory.memory import Memory
from submax.core.rewards.discrete import Discrete
from submax.core.spaces.arms import Arms
from submax.core.spaces.slots import Slots
from submax.testing.rules.examples import padded, rows_of, some_feedback

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
        for row in range(piece.reward.shape[1]):
            weight = piece.weight[replica, row]
            if weight == 0:
                continue
            reward = piece.reward[replica, row]
            log_prob = np.nan if piece.log_prob is None else piece.log_prob[replica, row]
            rows.append(
                (
                    piece.context[replica, row],
                    piece.action[replica, row],
                    reward,
                    log_prob,
                    weight,
                    0.0,
                )
            )
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


@pytest.mark.parametrize("problem", PROBLEMS, ids=repr)
def test_rows_of_weight_0_are_left_out_whatever_they_hold(problem, seed):
    feedback = some_feedback(problem, 2, 12, seed)
    plain, full = (added(Buffer.empty(problem, 2), given) for given in (feedback, padded(feedback)))
    for one, other in zip(plain, full, strict=True):
        np.testing.assert_array_equal(one, other)


def test_adding_nothing_changes_nothing(seed):
    problem = PROBLEMS[0]
    feedback = some_feedback(problem, 2, 5, seed)
    buffer = added(Buffer.empty(problem, 2), feedback)
    for given in (
        rows_of(feedback, slice(0, 0)),
        feedback._replace(weight=np.zeros_like(feedback.weight)),
    ):
        for one, other in zip(buffer, added(buffer, given), strict=True):
            np.testing.assert_array_equal(one, other)


def test_the_old_buffer_stays_as_it_was(seed):
    problem = PROBLEMS[1]
    feedback = some_feedback(problem, 2, 6, seed)
    old = added(Buffer.empty(problem, 2), rows_of(feedback, slice(0, 3)))
    before = [array.copy() for array in old]
    added(old, rows_of(feedback, slice(3, 6)))
    for array, copy in zip(old, before, strict=True):
        np.testing.assert_array_equal(array, copy)


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


def test_before_the_first_row_all_levels_have_equal_shares():
    buffer = Buffer.empty(PROBLEMS[1], 2)
    assert np.array_equal(buffer.level_share(reward_encoding(PROBLEMS[1], 2)), np.full((2, 2), 0.5))
    assert np.array_equal(buffer.filled, [0, 0])


def test_a_level_never_seen_has_share_exactly_0(seed):
    problem = PROBLEMS[1]
    feedback = some_feedback(problem, 2, 7, seed)._replace(reward=np.ones((2, 7)))
    share = added(Buffer.empty(problem, 2), feedback).level_share(reward_encoding(problem, 2))
    assert np.array_equal(share, [[0.0, 1.0]] * 2)


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
