import numpy as np

from submax.models.regression.sampled_rows import RegressionRows, SampledRows
from submax.testing.rules.goodness_of_fit import SMALLEST_P_VALUE, goodness_of_fit


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


def test_all_rows_are_kept_while_there_is_room(seed):
    sample = sampled([3, 0, 4], 7, 1.0, np.random.default_rng(seed))
    assert sample.rows.number.tolist() == list(range(7))
    assert sample.seen == 7


def test_every_row_has_the_same_chance(seed):
    rng = np.random.default_rng(seed)
    sizes, kept = [3, 5, 1, 11], []
    for _ in range(2500):
        sample = sampled(sizes, 6, 1.0, rng)
        assert len(np.unique(sample.rows.number)) == 6
        # One of the six: those of one sample depend on each other.
        kept.append(rng.choice(sample.rows.number))
    assert goodness_of_fit(np.array(kept), np.full(20, 1 / 20)) > SMALLEST_P_VALUE


def test_the_numbers_of_a_row_stay_together(seed):
    rows = sampled([30, 30, 30], 10, 1.0, np.random.default_rng(seed)).rows
    np.testing.assert_array_equal(rows.context[:, 0], rows.number)
    np.testing.assert_array_equal(rows.reward, rows.number)
    np.testing.assert_array_equal(rows.log_prob, -rows.number)


def test_weights_fall_with_every_later_row(seed):
    sample = sampled([4, 9, 1, 6], 12, 0.9, np.random.default_rng(seed))
    np.testing.assert_allclose(sample.rows.weight, 0.9 ** (19.0 - sample.rows.number))


def test_kept_rows_stand_for_all(seed):
    rng = np.random.default_rng(seed)
    assert sampled([], 5, 1.0, rng).standing_for_all().weight.size == 0
    assert sampled([5], 5, 1.0, rng).standing_for_all().weight.tolist() == [1.0] * 5
    assert sampled([5, 35], 5, 1.0, rng).standing_for_all().weight.tolist() == [8.0] * 5
