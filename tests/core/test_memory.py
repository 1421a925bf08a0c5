import itertools

import numpy as np
import pytest
from refusals import raises_code

from submax import Arms, Continuous, Problem, Slots
from submax.estimators.counting import Counting
from submax.models.memory import NEGLIGIBLE, Buffer, Memory
from submax.models.training_settings import (
    CUT_OFF,
    MAX_HELD_OUT_ROWS,
    MIN_ROWS_TO_HOLD_OUT,
    ContextScaling,
    HeldOut,
    Minibatches,
    Training,
)
from submax.testing.assertions import SMALLEST_P_VALUE, goodness_of_fit
from submax.testing.problems import some_feedback

PROBLEM = Problem(Arms(4), context_width=1, scale=Continuous())
FORGETFUL = [
    Memory(window=1),
    Memory(window=7),
    Memory(window=100),
    Memory(discount=0.9),
    Memory(discount=0.3),
    Memory(window=5, discount=0.8),
]


def numbered(replicas, rows, seed):
    """Feedback whose reward is the number of its row, with rows that are not there."""
    feedback = some_feedback(PROBLEM, replicas, rows, seed)
    rng = np.random.default_rng((seed, 7))
    weight = rng.choice([0.0, 0.5, 1.0, 2.0], p=[0.25, 0.25, 0.25, 0.25], size=(replicas, rows))
    return feedback._replace(reward=np.tile(np.arange(float(rows)), (replicas, 1)), weight=weight)


def pieces_of(feedback, ends):
    return [feedback.rows(slice(a, b)) for a, b in zip((0, *ends[:-1]), ends, strict=True)]


def remembered(pieces, memory, seed):
    rng = np.random.default_rng(seed)
    buffer = Buffer.empty(PROBLEM, len(pieces[0].reward))
    for piece in pieces:
        buffer = buffer.add(piece, memory, rng)
    return buffer


def slow(pieces, memory, replica):
    """Number and weight of each row that is kept, from a list."""
    kept = []
    for piece in pieces:
        there = np.flatnonzero(piece.weight[replica] > 0)
        kept = [(number, weight * memory.discount ** len(there)) for number, weight in kept]
        heaviest = max((weight for _, weight in kept), default=0.0)
        kept = [one for one in kept if memory.discount == 1 or one[1] > NEGLIGIBLE * heaviest]
        for age, row in zip(range(len(there) - 1, -1, -1), there, strict=True):
            if memory.discount**age > NEGLIGIBLE:
                faded = piece.weight[replica, row] * memory.discount**age
                kept.append((piece.reward[replica, row], faded))
        if memory.window is not None:
            kept = kept[-memory.window :]
    return kept


@pytest.mark.parametrize("memory", [Memory(), *FORGETFUL], ids=repr)
def test_a_buffer_keeps_what_a_list_keeps(memory, seed):
    feedback = numbered(4, 60, seed)
    # A replica that has nothing in one piece, and one that never has anything.
    feedback.weight[1, 20:45] = 0.0
    feedback.weight[3] = 0.0
    pieces = pieces_of(feedback, (1, 20, 45, 45, 60))
    # Probabilities that were not logged are unknown.
    pieces[1] = pieces[1]._replace(log_prob=None)
    feedback.log_prob[:, 1:20] = np.nan
    buffer = remembered(pieces, memory, seed)
    assert memory.forgets == (memory != Memory())
    assert buffer.reward.shape[1] == buffer.filled.max()
    for replica in range(4):
        expected = slow(pieces, memory, replica)
        count = len(expected)
        assert buffer.filled[replica] == count
        numbers, weights = np.array(expected).reshape(count, 2).T
        np.testing.assert_allclose(buffer.weight[replica, :count], weights)
        for name in ("context", "action", "reward", "log_prob"):
            whole = getattr(feedback, name)[replica, numbers.astype(int)]
            np.testing.assert_array_equal(getattr(buffer, name)[replica, :count], whole)
        for array in buffer[:-1]:
            assert not np.any(array[replica, count:])


def test_a_light_new_row_stays_beside_a_heavy_old_one():
    feedback = numbered(1, 2, 0)._replace(weight=np.array([[1e6, 1.0]]))
    buffer = remembered(pieces_of(feedback, (1, 2)), Memory(discount=0.9), 0)
    assert buffer.reward.tolist() == [[0.0, 1.0]]


def test_a_reservoir_keeps_all_new_rows_and_so_many_old_ones(seed):
    feedback = numbered(50, 40, seed)
    pieces = pieces_of(feedback, (4, 25, 40))
    buffer = Buffer.empty(PROBLEM, 50)
    rng = np.random.default_rng(seed)
    for piece in pieces:
        before, buffer = buffer, buffer.add(piece, Memory(reservoir=6), rng)
        for replica in range(50):
            new = piece.reward[replica, piece.weight[replica] > 0]
            old = before.reward[replica, : before.filled[replica]]
            found = buffer.reward[replica, : buffer.filled[replica]]
            assert np.array_equal(found[len(found) - len(new) :], new)
            kept = found[: len(found) - len(new)]
            assert len(kept) == min(len(old), 6 if len(new) else len(old))
            # In their order, each once, with the weight that it had.
            assert np.all(np.diff(found) > 0)
            assert set(kept) <= set(old)
            weight = feedback.weight[replica, found.astype(int)]
            assert np.array_equal(buffer.weight[replica, : len(found)], weight)


@pytest.mark.parametrize("ends", [(12, 13), (3, 4, 8, 12, 13), (1, 2, 3, 12, 13)], ids=str)
def test_every_old_row_is_kept_with_the_same_chance(ends, seed):
    """Over many replicas, whatever the parts in which the rows came; two kept are no pair."""
    replicas = 8000
    feedback = some_feedback(PROBLEM, replicas, 13, seed)
    feedback = feedback._replace(reward=np.tile(np.arange(13.0), (replicas, 1)))
    buffer = remembered(pieces_of(feedback, ends), Memory(reservoir=2), (seed, *ends))
    assert np.all(buffer.filled == 3)
    first, second, last = buffer.reward.T.astype(int)
    assert np.all(last == 12)
    pairs = [(one, other) for other in range(12) for one in range(other)]
    place = {pair: number for number, pair in enumerate(pairs)}
    drawn = np.array([place[pair] for pair in zip(first, second, strict=True)])
    assert goodness_of_fit(drawn, np.full(len(pairs), 1 / len(pairs))) > SMALLEST_P_VALUE


@pytest.mark.parametrize("memory", FORGETFUL, ids=repr)
def test_counting_counts_the_rows_that_are_kept(memory, seed):
    feedback, rng = numbered(3, 40, seed), np.random.default_rng(seed)
    feedback = feedback._replace(reward=rng.poisson(2.0, size=(3, 40)).astype(np.float64))
    pieces, estimator = pieces_of(feedback, (15, 16, 40)), Counting(0.5, memory)
    assert estimator.traits.forgets
    params = estimator.init(PROBLEM, 3, rng)
    for piece in pieces:
        params = estimator.fit(params, piece, rng)
    row_number = np.tile(np.arange(40.0), (3, 1))
    numbers = pieces_of(feedback._replace(reward=row_number), (15, 16, 40))
    belief = estimator.belief(params, np.zeros((3, 1, 1)))
    for replica in range(3):
        rows, weights = np.array(slow(numbers, memory, replica)).T
        rows = rows.astype(int)
        reward, arm = feedback.reward[replica, rows], feedback.action[replica, rows, 0]
        encoding = PROBLEM.scale.reward_encoding(reward[None], weights[None])
        assert np.array_equal(belief.levels()[replica], encoding.levels[0])
        counts = np.zeros((2, 4))
        for level, one, weight in zip(encoding.nearest(reward[None])[0], arm, weights, strict=True):
            counts[level, one] += weight
        expected = (counts + 0.5) / (counts + 0.5).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(belief.prob_of_all()[replica, 0], expected)
        share = counts.sum(axis=1) / counts.sum()
        np.testing.assert_allclose(belief.level_prior()[replica, 0], share, atol=1e-12)


@pytest.mark.parametrize(
    ("kind", "settings", "parameter"),
    [
        *((Memory, {"discount": wrong}, "discount") for wrong in (0.0, 1.1, float("nan"), "1")),
        # Only one of the two is allowed.
        (Memory, {"window": 3, "reservoir": 3}, "reservoir"),
        # Fitted steps go on by themselves.
        (Training, {"continued": True}, None),
    ],
    ids=str,
)
def test_bad_settings_are_refused(kind, settings, parameter):
    with raises_code("invalid-input", parameter):
        kind(**settings)


# The rows that networks are trained on: held out, drawn and scaled


def parted(rows):
    """The places trained on and the places held out, of one replica with so many rows."""
    held_out = HeldOut.of(np.array([rows]))
    number = np.arange(rows - held_out.rows[0])
    places, there = held_out.places()
    return held_out.trained_on(number[None])[0], places[there]


LIMIT = 10 * MAX_HELD_OUT_ROWS
"""From so many rows on, no more are held out."""


@pytest.mark.parametrize("rows", [0, 63, 64, 65, 99, 1000, LIMIT - 1, LIMIT + 78, 5 * LIMIT])
def test_every_row_is_trained_on_or_held_out_and_not_both(rows):
    trained_on, held = parted(rows)
    assert sorted([*trained_on, *held]) == list(range(rows))
    # A tenth within limits, and then the latest rows.
    expected = 0 if rows < MIN_ROWS_TO_HOLD_OUT else min(rows // 10, MAX_HELD_OUT_ROWS)
    assert len(held) == expected
    assert np.all(held >= rows - 10 * (expected + 1))


def test_a_row_that_was_trained_on_is_never_held_out_later():
    sizes = [MIN_ROWS_TO_HOLD_OUT, 70, 71, 500, LIMIT, LIMIT + 9, LIMIT + 10, 2 * LIMIT]
    for before, after in itertools.pairwise(sizes):
        assert not set(parted(before)[0]) & set(parted(after)[1])


SLOTTED = Problem(Slots((2, 3)), context_width=2)


def filled_buffer(filled):
    """A buffer in which the first context number of a row says which replica and row it is."""
    replicas, rows = len(filled), max(filled)
    feedback = some_feedback(SLOTTED, replicas, rows, 0)
    number = 1000 * np.arange(replicas)[:, None] + np.arange(rows)
    feedback.context[..., 0] = number
    weight = (np.arange(rows) < np.array(filled)[:, None]).astype(float)
    return added(Buffer.empty(SLOTTED, replicas), feedback._replace(weight=weight))


def added(buffer, feedback):
    return buffer.add(feedback, Memory(), None)


def laid_out(buffer):
    """With the reward itself as what a network is told of it."""
    return Minibatches.of(buffer, buffer.action, buffer.reward[..., None])


def test_a_drawn_row_is_a_row_of_the_buffer_as_it_stands_there(seed):
    buffer = filled_buffer([7, 3])
    rows = laid_out(buffer).draw(5, 6, np.random.default_rng(seed))
    assert rows.dtype == np.float32
    replica = np.arange(2)[:, None]
    place = rows[..., 0].astype(int) - 1000 * replica
    columns = (buffer.context, buffer.action, buffer.reward[..., None], buffer.weight[..., None])
    whole = np.concatenate(columns, axis=-1)[replica, place]
    assert whole.shape == (5, 2, 6, 2 + 2 + 2)
    np.testing.assert_array_equal(rows, whole.astype(np.float32))


@pytest.mark.parametrize("filled", [[1, 1, 1], [2, 9, 5], [40, 1, 17]])
def test_every_row_is_drawn_equally_often_and_only_by_its_replica(filled, seed):
    rng = np.random.default_rng((seed, *filled))
    rows = laid_out(filled_buffer(filled)).draw(60, 100, rng)
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


WIDTH = 4
WIDE = Problem(Arms(2), context_width=WIDTH)


def with_contexts(context, weight):
    feedback = some_feedback(WIDE, *weight.shape, 0)._replace(context=context, weight=weight)
    return added(Buffer.empty(WIDE, len(weight)), feedback)


def test_features_have_mean_0_and_the_same_deviation_and_are_cut_off(seed):
    """Features are of very different size, one is constant; the second replica has few rows."""
    rng = np.random.default_rng(seed)
    context = rng.normal(size=(2, 500, WIDTH)) * [1.0, 1e6, 1e-6, 0.0] + [5.0, 1e7, 0.0, 3.3]
    there = np.stack([np.ones(500), np.arange(500) < 30]).astype(float)
    buffer = with_contexts(context, there)
    scaling = ContextScaling.of(buffer)
    scaled = scaling.scaled(buffer.context)
    assert scaled.dtype == np.float32
    for replica, rows in enumerate(buffer.filled):
        found = scaled[replica, :rows].astype(float)
        np.testing.assert_allclose(found[:, :3].mean(axis=0), 0.0, atol=1e-3)
        np.testing.assert_allclose(found[:, :3].std(axis=0), 1 / np.sqrt(WIDTH), rtol=1e-3)
        assert not found[:, 3].any()
    limit = CUT_OFF / np.sqrt(WIDTH)
    for far in (1e30, -1e30):
        # What was constant is 0 even if it changes later.
        expected = np.sign(far) * limit * np.array([1, 1, 1, 0])
        found = scaling.scaled(np.full((2, 1, WIDTH), far))
        np.testing.assert_allclose(found, np.broadcast_to(expected, found.shape), rtol=1e-6)


def test_deviations_up_to_the_largest_stay(seed):
    size = np.array([0.1, 0.7, 1.0, 30.0])
    context = np.random.default_rng(seed).normal(size=(1, 5000, WIDTH)) * size
    buffer = with_contexts(context, np.ones((1, 5000)))
    found = ContextScaling.of(buffer, 1.0).scaled(buffer.context)[0].std(axis=0)
    # At least 1 / √4; the standard error of a deviation is 1 % of it.
    np.testing.assert_allclose(found, [0.5, 0.7, 1.0, 1.0], rtol=0.05)
