import numpy as np
import pytest
from refusals import raises_code

from submax.core.problem import Problem
from submax.core.rewards import Continuous, Discrete
from submax.core.spaces import Arms
from submax.estimators.counting import Counting
from submax.models.memory import NEGLIGIBLE, Buffer, Memory
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


def test_level_shares_are_shares_of_the_weight(seed):
    rng = np.random.default_rng(seed)
    problem = Problem(Arms(3), scale=Discrete((-1.0, 0.0, 2.0)))
    feedback = some_feedback(problem, 3, 25, seed)
    feedback = feedback._replace(weight=rng.choice([0.0, 0.5, 2.0], size=(3, 25)))
    feedback.weight[2] = 0.0
    nothing = np.zeros((3, 0))
    encoding = problem.scale.reward_encoding(nothing, nothing)
    share = Buffer.empty(problem, 3).add(feedback, Memory(), None).level_share(encoding)
    for replica in range(2):
        reward, weight = feedback.reward[replica], feedback.weight[replica]
        mass = [weight[reward == value].sum() for value in problem.scale.values]
        np.testing.assert_allclose(share[replica], np.array(mass) / sum(mass))
    assert np.array_equal(share[2], np.full(3, 1 / 3))


def test_contexts_keep_the_precision_they_were_given_in(seed):
    problem = PROBLEM
    exact = some_feedback(problem, 2, 5, seed)
    short = exact._replace(context=exact.context.astype(np.float32))
    for given in (exact, short):
        buffer = Buffer.empty(problem, 2).add(given, Memory(), None)
        assert buffer.context.dtype == given.context.dtype
        np.testing.assert_array_equal(buffer.context, given.context)
    both = Buffer.empty(problem, 2).add(short, Memory(), None).add(exact, Memory(), None)
    assert both.context.dtype == np.float64
    np.testing.assert_array_equal(both.context[:, :5], short.context)
    np.testing.assert_array_equal(both.context[:, 5:], exact.context)


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


@pytest.mark.parametrize(
    "memory", [*FORGETFUL, Memory(reservoir=3), Memory(reservoir=2, discount=0.9)], ids=repr
)
def test_a_replica_without_news_stays_as_it_is(memory, seed):
    feedback = numbered(3, 30, seed)
    old = remembered(pieces_of(feedback, (10, 20)), memory, seed)
    before = [array.copy() for array in old]
    news = feedback.rows(slice(20, 30))
    news.weight[1] = 0.0
    after = old.add(news, memory, np.random.default_rng(seed))
    count = old.filled[1]
    assert after.filled[1] == count
    for one, other, copy in zip(after[:-1], old[:-1], before[:-1], strict=True):
        assert np.array_equal(one[1, :count], copy[1, :count])
        assert np.array_equal(other, copy)


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
    ("parameter", "settings"),
    [
        ("window", {"window": 0}),
        ("window", {"window": 1.5}),
        ("reservoir", {"reservoir": -1}),
        ("reservoir", {"reservoir": True}),
        ("discount", {"discount": 0.0}),
        ("discount", {"discount": 1.1}),
        ("discount", {"discount": float("nan")}),
        ("discount", {"discount": "1"}),
        # Only one of the two is allowed.
        ("reservoir", {"window": 3, "reservoir": 3}),
    ],
    ids=str,
)
def test_bad_settings_are_refused(parameter, settings):
    with raises_code("invalid-input", parameter):
        Memory(**settings)
