import numpy as np
import pytest
from scipy import stats

from submax.evaluation import intervals
from submax.evaluation.sums import Terms


def normal(terms, level=0.95):
    return intervals.normal(terms.summed(), level)


def sequential(terms, level=0.95):
    return intervals.sequential(terms.summed(), level)


Z = stats.norm.ppf(0.975)


def weighted(rng, shape):
    """Weighted rewards and their weights, which go together."""
    weight = rng.gamma(2.0, 0.5, shape)
    return weight * (rng.random(shape) < 0.3 + 0.4 * (weight > 1)), weight


def half(interval):
    return (interval.high - interval.low) / 2


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
def test_normal_of_a_mean_is_the_closed_form(level, rng):
    y = rng.exponential(2.0, 40)
    found = normal(Terms(y), level)
    variance = sum((one - y.mean()) ** 2 for one in y) / 39
    expected = stats.norm.interval(level, y.mean(), np.sqrt(variance / 40))
    assert found == pytest.approx(expected, abs=1e-12)


def test_normal_of_a_ratio_is_the_delta_method(rng):
    y, z = weighted(rng, 60)
    found = normal(Terms(y, z))
    ratio, gradient = y.sum() / z.sum(), np.array([1, -y.mean() / z.mean()]) / z.mean()
    error = np.sqrt(gradient @ np.cov(y, z) @ gradient / 60)
    assert found == pytest.approx((ratio - Z * error, ratio + Z * error), abs=1e-12)


def test_normal_of_a_ratio_has_the_width_of_its_spread(rng):
    logs, rows = 2000, 500
    y, z = weighted(rng, (logs, rows))
    terms = [Terms(*columns) for columns in zip(y, z, strict=True)]
    spread = np.std([one.value for one in terms], ddof=1)
    widths = [half(normal(one)) / Z for one in terms]
    # The spread is known to 1 / √(2 logs), and the delta method to the order of 1 / rows.
    assert np.mean(widths) == pytest.approx(spread, rel=4 / np.sqrt(2 * logs) + 4 / rows)
    mean_only = np.mean([half(normal(Terms(one))) / Z for one in y])
    assert mean_only > 1.2 * spread


@pytest.mark.parametrize("method", intervals.INTERVALS.values(), ids=intervals.INTERVALS)
def test_one_or_two_rows_are_held_and_a_denominator_of_zeros_gives_none(method, rng):
    for rows in (1, 2):
        for one in (Terms(rng.random(rows)), Terms(*weighted(rng, rows))):
            found = method(one.summed(), 0.95)
            assert found.low <= one.value <= found.high
    assert np.all(np.isfinite(method(Terms(np.ones(9)).summed(), 0.95)))
    assert np.all(np.isnan(method(Terms(np.zeros(9), np.zeros(9)).summed(), 0.95)))


# Intervals that hold at all looks together

LOOKS = range(40, 601, 40)


def missed(method, paths, reach):
    """The share of growing logs in which some look misses the truth, which is 0.2."""
    count = 0
    for path in paths:
        for rows in LOOKS:
            ends = method(Terms(path[:rows], reach=reach), 0.9)
            if not ends.low <= 0.2 <= ends.high:
                count += 1
                break
    return count / len(paths)


@pytest.mark.parametrize("reach", [(0.0, 2.0), None])
def test_the_truth_is_missed_at_any_look_as_rarely_as_was_said(seed, reach):
    rng = np.random.default_rng(seed)
    paths = 2.0 * (rng.random((150, max(LOOKS))) < 0.1)
    error = missed(sequential, paths, reach)
    assert error < 0.1 + 4.5 * np.sqrt(0.1 * 0.9 / len(paths))
    if reach is None:
        # Intervals for a single look miss the truth at some look much more often.
        assert missed(normal, paths, reach) > error + 0.1


def test_a_row_for_many_decisions_counts_as_many(seed):
    rng = np.random.default_rng(seed)
    counts, values = rng.integers(1, 9, 50) * 1.0, rng.random(50)
    each = np.repeat(values, counts.astype(int))
    assert sequential(Terms(values, counts=counts)) == pytest.approx(sequential(Terms(each)))
    bounded = sequential(Terms(values, counts=counts, reach=(0.0, 1.0)))
    single = sequential(Terms(each, reach=(0.0, 1.0)))
    # Means before a row are computed for all its decisions together, which changes little.
    assert bounded == pytest.approx(single, rel=0.1)


def test_it_shrinks_with_rows_and_is_wider_than_for_one_look(seed):
    rng = np.random.default_rng(seed)
    values = rng.random(20_000)
    widths = []
    for rows in (200, 2000, 20_000):
        terms = Terms(values[:rows], reach=(0.0, 1.0))
        always, once = sequential(terms), normal(terms)
        widths.append(always.high - always.low)
        assert widths[-1] > once.high - once.low
    assert widths[0] > 2 * widths[1] > 4 * widths[2]
    assert sequential(Terms(values[:1])).high == np.inf
