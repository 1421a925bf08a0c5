"""The rows that networks are trained on: held out, drawn and scaled."""

import itertools

import numpy as np
import pytest

from submax.core.problem import Problem
from submax.core.spaces import Arms, Slots
from submax.models.memory import Buffer, Memory
from submax.models.training import (
    CUT_OFF,
    MAX_HELD_OUT_ROWS,
    MIN_ROWS_TO_HOLD_OUT,
    ContextScaling,
    HeldOut,
    Minibatches,
)
from submax.testing.assertions import SMALLEST_P_VALUE, goodness_of_fit
from submax.testing.problems import some_feedback


def parted(rows):
    """The places trained on and the places held out, of one replica with so many rows."""
    held_out = HeldOut.of(np.array([rows]))
    number = np.arange(rows - held_out.rows[0])
    places, there = held_out.places()
    return held_out.trained_on(number[None])[0], places[there]


LIMIT = 10 * MAX_HELD_OUT_ROWS
"""From so many rows on, no more are held out."""


@pytest.mark.parametrize("rows", [0, 1, 63, 64, 65, 99, 100, LIMIT - 1, LIMIT, LIMIT + 78])
def test_every_row_is_trained_on_or_held_out_and_not_both(rows):
    trained_on, held = parted(rows)
    assert sorted([*trained_on, *held]) == list(range(rows))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (MIN_ROWS_TO_HOLD_OUT - 1, 0),
        (MIN_ROWS_TO_HOLD_OUT, 6),
        (1000, 100),
        (LIMIT, MAX_HELD_OUT_ROWS),
        (5 * LIMIT, MAX_HELD_OUT_ROWS),
    ],
)
def test_a_tenth_is_held_out_within_limits(rows, expected):
    assert len(parted(rows)[1]) == expected


def test_a_row_that_was_trained_on_is_never_held_out_later():
    sizes = [MIN_ROWS_TO_HOLD_OUT, 70, 71, 500, LIMIT, LIMIT + 9, LIMIT + 10, 2 * LIMIT]
    for before, after in itertools.pairwise(sizes):
        assert not set(parted(before)[0]) & set(parted(after)[1])


def test_beyond_the_limit_the_latest_rows_are_held_out():
    held = parted(2 * LIMIT)[1]
    assert held.min() >= LIMIT


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


WIDTH = 4
WIDE = Problem(Arms(2), context_width=WIDTH)


def with_contexts(context, weight):
    feedback = some_feedback(WIDE, *weight.shape, 0)._replace(context=context, weight=weight)
    return Buffer.empty(WIDE, len(weight)).add(feedback, Memory(), None)


@pytest.fixture(scope="module")
def buffer(seed):
    """Features of very different size, one of them constant; the second replica has few rows."""
    rng = np.random.default_rng(seed)
    context = rng.normal(size=(2, 500, WIDTH)) * [1.0, 1e6, 1e-6, 0.0] + [5.0, 1e7, 0.0, 3.3]
    return with_contexts(context, np.stack([np.ones(500), np.arange(500) < 30]).astype(float))


def test_features_have_mean_0_and_the_same_deviation(buffer):
    scaled = ContextScaling.of(buffer).scaled(buffer.context)
    assert scaled.dtype == np.float32
    for replica, rows in enumerate(buffer.filled):
        found = scaled[replica, :rows, :3].astype(float)
        np.testing.assert_allclose(found.mean(axis=0), 0.0, atol=1e-3)
        np.testing.assert_allclose(found.std(axis=0), 1 / np.sqrt(WIDTH), rtol=1e-3)


def test_a_constant_feature_is_0_even_if_it_changes_later(buffer):
    scaling = ContextScaling.of(buffer)
    assert np.all(scaling.scaled(buffer.context)[0, :, 3] == 0)
    assert np.all(scaling.scaled(np.full((2, 1, WIDTH), 1e9))[..., 3] == 0)


def test_what_is_far_out_is_cut_off(buffer):
    scaling = ContextScaling.of(buffer)
    limit = CUT_OFF / np.sqrt(WIDTH)
    for far in (1e30, -1e30):
        found = scaling.scaled(np.full((2, 1, WIDTH), far))[..., :3]
        np.testing.assert_allclose(found, np.sign(far) * limit, rtol=1e-6)


def test_deviations_up_to_the_largest_stay(seed):
    size = np.array([0.1, 0.7, 1.0, 30.0])
    context = np.random.default_rng(seed).normal(size=(1, 5000, WIDTH)) * size
    buffer = with_contexts(context, np.ones((1, 5000)))
    found = ContextScaling.of(buffer, 1.0).scaled(buffer.context)[0].std(axis=0)
    # At least 1 / √4; the standard error of a deviation is 1 % of it.
    np.testing.assert_allclose(found, [0.5, 0.7, 1.0, 1.0], rtol=0.05)
