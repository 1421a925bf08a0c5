import numpy as np
import pytest

from submax.models.regression.sums import Sums


@pytest.fixture
def rows(seed):
    rng = np.random.default_rng(seed)
    features = np.concatenate([np.ones((50, 1)), rng.normal(size=(50, 3))], axis=1)
    return features, rng.integers(3, size=50), rng.normal(size=50), rng.uniform(size=50)


def assert_equal(one, other):
    for mine, theirs in zip(one, other, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-12)


def test_they_are_the_sums_of_their_definition(rows):
    features, number, reward, weight = rows
    sums = Sums.empty(4, 4, 0.5).add(features, number, reward, weight)
    gram, moment = np.zeros((4, 4, 4)), np.zeros((4, 4))
    for seen, one, earned, counted in zip(*rows, strict=True):
        gram[one] += counted * np.outer(seen, seen)
        moment[one] += counted * (earned - 0.5) * seen
    relative = reward - 0.5
    total = weight.sum(), weight @ relative, weight @ relative**2
    assert_equal(sums, Sums(gram, moment, *total, 0.5))


def test_parts_add_up(rows):
    whole = Sums.empty(3, 4, 0.5).add(*rows)
    parts = Sums.empty(3, 4, 0.5)
    for part in (slice(0, 20), slice(20, 20), slice(20, 50)):
        parts = parts.add(*(column[part] for column in rows))
    assert_equal(parts, whole)


def test_sums_of_different_rows_are_joined(rows):
    one = Sums.empty(3, 4, 0.5).add(*(column[:20] for column in rows))
    other = Sums.empty(3, 4, -7.0).add(*(column[20:] for column in rows))
    assert_equal(one.joined(other), Sums.empty(3, 4, 0.5).add(*rows))


def test_a_weight_of_two_is_the_row_twice(rows):
    features, number, reward, _ = rows
    twice = Sums.empty(3, 4, 0.5).add(features, number, reward, np.full(50, 2.0))
    repeated = [np.repeat(column, 2, axis=0) for column in (features, number, reward)]
    assert_equal(twice, Sums.empty(3, 4, 0.5).add(*repeated, np.ones(100)))


def test_faded_sums_are_those_of_smaller_weights(rows):
    features, number, reward, weight = rows
    faded = Sums.empty(3, 4, 0.5).add(*rows).faded(0.3)
    assert_equal(faded, Sums.empty(3, 4, 0.5).add(features, number, reward, 0.3 * weight))


def test_rewards_can_be_counted_from_another_centre(rows):
    features, number, reward, weight = rows
    moment, square = Sums.empty(3, 4, 0.5).add(*rows).centred(-2.0)
    other = Sums.empty(3, 4, -2.0).add(features, number, reward, weight)
    np.testing.assert_allclose(moment, other.moment, rtol=1e-10)
    assert square == pytest.approx(other.square)


@pytest.mark.parametrize("offset", [0.0, 1.0, 1e6, -1e9])
def test_small_differences_of_large_rewards_are_kept(rows, offset):
    features, number, reward, _ = rows
    given = offset + 0.01 * reward
    sums = Sums.empty(3, 4, float(given.mean())).add(features, number, given, np.ones(50))
    # A reward near 1e9 is rounded to 1e-7.
    assert sums.variance == pytest.approx(1e-4 * np.var(reward), rel=1e-4)


@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3, 1e6 / 3, 1e-12])
@pytest.mark.parametrize("offset", ["mean", 0.0])
def test_equal_rewards_have_no_variance(rows, value, offset):
    features, number, _, weight = rows
    reward = np.full(50, value)
    start = float(np.average(reward, weights=weight)) if offset == "mean" else offset
    sums = Sums.empty(3, 4, start)
    assert sums.variance == 0.0
    for _ in range(5):
        sums = sums.add(features, number, reward, weight)
    assert sums.variance == 0.0
