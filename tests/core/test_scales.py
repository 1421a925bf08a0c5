"""Scales of rewards, their levels, and how rewards are encoded."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import raises_code

from submax.core.rewards import Binary, Continuous, Counts, Discrete, RewardEncoding

ONE_TO_FIVE = (1.0, 2.0, 3.0, 4.0, 5.0)
SCALES = [
    (Binary(), (0.0, 1.0), [0.0, 1.0], [0.5, 2.0, np.nan, np.inf]),
    (Discrete((-1.0, 0.0, 2.5)), (-1.0, 2.5), [-1.0, 0.0, 2.5], [1.0, 2.4, -np.inf]),
    (Discrete(ONE_TO_FIVE, asked=3), (1.0, 5.0), [1.0, 3.0, 5.0], [1.5, 0.0, 6.0]),
    (Discrete(ONE_TO_FIVE, asked=2), (1.0, 5.0), [1.0, 5.0], [1.5, 0.0, 6.0]),
    (Discrete((0.0, 1.0, 5.0, 9.0), asked=4), (0.0, 9.0), [0.0, 1.0, 5.0, 9.0], [2.0]),
    (Continuous(), None, [-1e9, 0.1, 1e9], [np.nan, np.inf]),
    (Continuous(low=0.0), None, [0.0, 1e9], [-1e-9, np.nan]),
    (Continuous(high=3.0), None, [-1e9, 3.0], [3.1, -np.inf]),
    (Continuous(low=-1.0, high=2.0), (-1.0, 2.0), [-1.0, 2.0], [-1.1, 2.1]),
    (Counts(), None, [0.0, 1.0, 1e6], [-1.0, 0.5, np.nan]),
]
"""Each with its bounds, rewards that can occur, and rewards that cannot.

Of the scales whose levels do not move, the rewards that can occur are the levels.
"""
MOVING = [
    Continuous(),
    Continuous(quantiles=(0.0, 1.0), asked=4, bin_edges=3),
    Continuous(quantiles=(0.3, 0.55), asked=3, bin_edges=2),
    Counts(),
    Counts(quantiles=(0.25, 0.75), asked=5, bin_edges=7),
]


def slow_quantile(pairs, share):
    """The first reward up to which at least this share of the weight lies."""
    pairs = sorted(pairs)
    total, so_far = sum(weight for _, weight in pairs), 0.0
    for reward, weight in pairs:
        so_far += weight
        if so_far >= share * total - 1e-9 * total:
            return reward
    raise AssertionError


def padded(values):
    """Each once, and the lowest in the places that are left."""
    different = sorted(set(values))
    return [different[0]] * (len(values) - len(different)) + different


def slow_levels(pairs, scale):
    shares = np.linspace(*scale.quantiles, scale.asked)
    asked = [slow_quantile(pairs, share) for share in shares]
    if asked[0] == asked[-1]:
        above = [pair for pair in pairs if pair[0] > asked[0]]
        below = [pair for pair in pairs if pair[0] < asked[0]]
        if above:
            asked = [asked[0], *(slow_quantile(above, share) for share in shares[1:])]
        elif below:
            asked = [*(slow_quantile(below, share) for share in shares[:-1]), asked[0]]
    return padded(asked)


def slow_bin_edges(pairs, scale):
    different = [(reward, 1.0) for reward in {reward for reward, _ in pairs}]
    return padded([slow_quantile(different, share) for share in np.linspace(0, 1, scale.bin_edges)])


def some_rewards(kind, shape, rng):
    """Rewards that are all different, mostly ties, and mostly zero."""
    if kind == "different":
        return np.floor(1e6 * rng.random(shape))
    if kind == "few":
        return rng.integers(3, size=shape).astype(np.float64)
    return np.where(rng.random(shape) < 0.95, 0.0, rng.poisson(3.0, size=shape))


@pytest.mark.parametrize(("scale", "bounds", "inside", "outside"), SCALES, ids=repr)
def test_it_contains_what_can_occur_and_knows_its_bounds(scale, bounds, inside, outside):
    assert scale.contains(np.array([*inside, *getattr(scale, "values", ())])).all()
    assert not scale.contains(np.array(outside)).any()
    scale.check(np.array([inside]))
    for stranger in outside:
        with raises_code("invalid-input", "reward"):
            scale.check(np.array([[*inside, stranger]]))
    assert scale.bounds == bounds
    if bounds is None:
        with raises_code("invalid-input"):
            scale.known_bounds("someone")
    else:
        assert scale.known_bounds("someone") == bounds


@pytest.mark.parametrize(("scale", "levels"), [(one[0], one[2]) for one in SCALES[:5]], ids=repr)
def test_fixed_levels_are_there_whatever_is_observed(scale, levels, seed):
    assert not scale.moves
    assert scale.levels == scale.width == len(levels)
    for rows in (0, 7):
        reward = np.random.default_rng(seed).normal(size=(3, rows))
        encoding = scale.reward_encoding(reward, np.ones((3, rows)))
        assert np.array_equal(encoding.levels, [levels] * 3)
        assert np.array_equal(encoding.bin_edges, [levels] * 3)


@pytest.mark.parametrize("kind", ["different", "few", "mostly zero"])
@pytest.mark.parametrize("scale", MOVING, ids=repr)
def test_moving_levels_are_weighted_quantiles_of_each_replica(scale, kind, seed):
    rng = np.random.default_rng(seed)
    shape = (20, 30)
    reward = some_rewards(kind, shape, rng)
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], size=shape)
    # Weights of which no sum is a share of another: nothing is decided by rounding.
    weight *= rng.uniform(0.9, 1.1, size=shape)
    weight[0] = 0.0
    assert scale.moves
    encoding = scale.reward_encoding(reward, weight)
    assert encoding.levels.shape == (20, scale.levels)
    assert encoding.bin_edges.shape == (20, scale.width)
    assert not encoding.levels[0].any()
    assert not encoding.bin_edges[0].any()
    for replica in range(1, 20):
        there = weight[replica] > 0
        pairs = list(zip(reward[replica][there], weight[replica][there], strict=True))
        assert encoding.levels[replica].tolist() == slow_levels(pairs, scale)
        assert encoding.bin_edges[replica].tolist() == slow_bin_edges(pairs, scale)


@pytest.mark.parametrize(
    ("kind", "settings", "parameter"),
    [
        (Discrete, {"values": (0.0,)}, "values"),
        (Discrete, {"values": "12"}, "values"),
        (Discrete, {"values": (0.0, np.nan)}, None),
        (Discrete, {"values": (0.0, 0.0)}, "values"),
        (Discrete, {"values": (0.0, 1.0), "asked": 1}, "asked"),
        (Discrete, {"values": (0.0, 1.0), "asked": 3}, "asked"),
        (Continuous, {"low": -np.inf}, None),
        (Continuous, {"high": np.nan}, None),
        (Continuous, {"low": 1.0, "high": 1.0}, "low"),
        (Continuous, {"quantiles": (0.9, 0.1)}, "quantiles"),
        (Continuous, {"quantiles": (0.5, 1.1)}, None),
        (Continuous, {"quantiles": (0.5,)}, "quantiles"),
        (Continuous, {"bin_edges": 1}, "bin_edges"),
        (Counts, {"quantiles": (0.5, 0.5)}, "quantiles"),
        (Counts, {"asked": 2.5}, "asked"),
    ],
    ids=str,
)
def test_bad_settings_are_refused(kind, settings, parameter):
    with raises_code("invalid-input", parameter):
        kind(**settings)


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
