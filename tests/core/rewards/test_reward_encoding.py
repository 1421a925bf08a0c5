import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submax.core.rewards.binary import Binary
from submax.core.rewards.discrete import Discrete
from submax.core.rewards.reward_encoding import RewardEncoding

# Quarters, so that sums and halves of them are exact.
quarters = st.integers(-40, 40).map(lambda number: number / 4)
rewards = st.lists(quarters, min_size=1, max_size=6)


def rising(least):
    """Numbers that rise, with the lowest several times where there are fewer than places."""
    different = st.lists(quarters, min_size=1, max_size=5, unique=True).map(sorted)
    padding = st.integers(0, 3)
    both = st.tuples(different, padding).map(lambda pair: [pair[0][0]] * pair[1] + pair[0])
    return both.filter(lambda values: len(values) >= least)


def encoding_of(values):
    row = np.array([values], dtype=np.float64)
    return RewardEncoding(row, row)


def slow_nearest(levels, reward):
    """The place of the nearest level: of the lower one halfway, of the first among equals."""
    return min(range(len(levels)), key=lambda place: (abs(levels[place] - reward), place))


@given(rising(1), rewards)
def test_the_nearest_level_is_that_of_a_slow_loop(levels, reward):
    found = encoding_of(levels).nearest(np.array([reward]))
    assert found.tolist() == [[slow_nearest(levels, one) for one in reward]]


def test_every_replica_has_levels_of_its_own(seed):
    rng = np.random.default_rng(seed)
    levels = np.sort(rng.normal(size=(5, 4)), axis=1)
    encoding, reward = RewardEncoding(levels, levels), rng.normal(size=(5, 30))
    for replica in range(5):
        one = encoding_of(levels[replica])
        given = reward[replica : replica + 1]
        assert np.array_equal(encoding.nearest(reward)[replica], one.nearest(given)[0])
        assert np.array_equal(encoding.encoded(reward)[replica], one.encoded(given)[0])


@given(rising(2), rewards)
def test_an_embedding_is_a_place_between_two_bin_edges(bin_edges, reward):
    found = encoding_of(bin_edges).encoded(np.array([reward]))[0]
    assert found.min() >= 0
    assert np.allclose(found.sum(axis=1), 1)
    assert np.all((found > 0).sum(axis=1) <= 2)
    # Linear between the bin edges, and cut off beyond the first and the last.
    assert np.allclose(found @ np.array(bin_edges), np.clip(reward, bin_edges[0], bin_edges[-1]))
    for row in found:
        places = np.flatnonzero(row)
        assert places[-1] - places[0] <= 1


@given(rising(2))
def test_a_reward_at_a_bin_edge_is_one_hot_and_equal_edges_are_one(bin_edges):
    found = encoding_of(bin_edges).encoded(np.array([bin_edges]))[0]
    assert np.array_equal(np.sort(found, axis=1)[:, -1], np.ones(len(bin_edges)))
    for one, mine in zip(bin_edges, found, strict=True):
        for other, yours in zip(bin_edges, found, strict=True):
            assert np.array_equal(mine, yours) == (one == other)


@pytest.mark.parametrize(
    "scale", [Binary(), Discrete((-1.0, 0.0, 2.0)), Discrete((1.0, 2.0, 3.0, 4.0, 5.0), asked=3)]
)
def test_fixed_levels_are_one_hot_in_their_order(scale):
    nothing = np.zeros((2, 0))
    encoding = scale.reward_encoding(nothing, nothing)
    assert np.array_equal(
        encoding.encoded(encoding.levels), np.tile(np.eye(scale.levels), (2, 1, 1))
    )
    assert np.array_equal(
        encoding.nearest(encoding.levels), np.tile(np.arange(scale.levels), (2, 1))
    )
