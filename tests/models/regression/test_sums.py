"""Rows of a regression: their sums, and a sample of them."""

import numpy as np
import pytest

from submax.models.regression.bayesian import Sums
from submax.models.regression.context_belief import RegressionRows, SampledRows
from submax.testing.assertions import SMALLEST_P_VALUE, goodness_of_fit


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


def test_sums_in_parts_joined_and_faded_are_those_of_the_rows(rows):
    features, number, reward, weight = rows
    empty = Sums.empty(3, 4, 0.5)
    whole, parts = empty.add(*rows), empty
    for part in (slice(0, 20), slice(20, 20), slice(20, 50)):
        parts = parts.add(*(column[part] for column in rows))
    assert_equal(parts, whole)
    one = empty.add(*(column[:20] for column in rows))
    other = Sums.empty(3, 4, -7.0).add(*(column[20:] for column in rows))
    assert_equal(one.joined(other), whole)
    assert_equal(whole.faded(0.3), empty.add(features, number, reward, 0.3 * weight))


def test_rewards_can_be_counted_from_another_centre(rows):
    moment, square = Sums.empty(3, 4, 0.5).add(*rows).centred(-2.0)
    other = Sums.empty(3, 4, -2.0).add(*rows)
    np.testing.assert_allclose(moment, other.moment, rtol=1e-10)
    assert square == pytest.approx(other.square)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e6 / 3, 1e-12])
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


def rows_from(first, count):
    """Rows whose numbers all say which they are."""
    place = np.arange(first, first + count)
    as_float = place.astype(np.float64)
    return RegressionRows(as_float[:, None], place, as_float, -as_float, np.ones(count))


def sampled(sizes, most, discount, rng):
    sample, first = SampledRows(RegressionRows.empty(1), 0), 0
    for size in sizes:
        sample = sample.add(rows_from(first, size), most, discount, rng)
        first += size
    return sample


def test_every_row_has_the_same_chance(seed):
    rng = np.random.default_rng(seed)
    sizes, kept = [3, 5, 1, 11], []
    for _ in range(1500):
        sample = sampled(sizes, 6, 1.0, rng)
        assert len(np.unique(sample.rows.number)) == 6
        # One of the six: those of one sample depend on each other.
        kept.append(rng.choice(sample.rows.number))
        np.testing.assert_array_equal(sample.rows.context[:, 0], sample.rows.number)
        np.testing.assert_array_equal(sample.rows.log_prob, -sample.rows.reward)
    assert goodness_of_fit(np.array(kept), np.full(20, 1 / 20)) > SMALLEST_P_VALUE


def test_weights_fall_with_every_later_row(seed):
    sample = sampled([4, 9, 1, 6], 12, 0.9, np.random.default_rng(seed))
    np.testing.assert_allclose(sample.rows.weight, 0.9 ** (19.0 - sample.rows.number))


def test_kept_rows_stand_for_all(seed):
    rng = np.random.default_rng(seed)
    assert sampled([], 5, 1.0, rng).standing_for_all().weight.size == 0
    assert sampled([3, 0, 2], 5, 1.0, rng).rows.number.tolist() == list(range(5))
    assert sampled([5], 5, 1.0, rng).standing_for_all().weight.tolist() == [1.0] * 5
    assert sampled([5, 35], 5, 1.0, rng).standing_for_all().weight.tolist() == [8.0] * 5
