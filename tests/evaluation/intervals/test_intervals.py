import numpy as np
import pytest
from scipy import stats

from submax.evaluation import intervals
from submax.evaluation.sums import Terms


def of_terms(method):
    return lambda terms, level, rng: method([one.summed() for one in terms], level, rng)


INTERVALS = {name: of_terms(method) for name, method in intervals.INTERVALS.items()}
normal, bootstrap, bernstein, sequential = (
    INTERVALS[name] for name in ("normal", "bootstrap", "bernstein", "sequential")
)
Z = stats.norm.ppf(0.975)
# Standard error of the 2.5 % quantile of 1000 normal numbers, in their standard deviations.
QUANTILE_ERROR = np.sqrt(0.025 * 0.975 / intervals.RESAMPLES) / stats.norm.pdf(Z)


def weighted(rng, shape):
    """Weighted rewards and their weights, which go together."""
    weight = rng.gamma(2.0, 0.5, shape)
    return weight * (rng.random(shape) < 0.3 + 0.4 * (weight > 1)), weight


def half(interval):
    return (interval.high - interval.low) / 2


@pytest.mark.parametrize("level", [0.5, 0.9, 0.95])
def test_normal_of_a_mean_is_the_closed_form(level, rng):
    y = rng.exponential(2.0, 40)
    [found] = normal([Terms(y)], level, rng)
    variance = sum((one - y.mean()) ** 2 for one in y) / 39
    expected = stats.norm.interval(level, y.mean(), np.sqrt(variance / 40))
    assert found == pytest.approx(expected, abs=1e-12)


def test_normal_of_a_ratio_is_the_delta_method(rng):
    y, z = weighted(rng, 60)
    [found] = normal([Terms(y, z)], 0.95, rng)
    ratio, gradient = y.sum() / z.sum(), np.array([1, -y.mean() / z.mean()]) / z.mean()
    error = np.sqrt(gradient @ np.cov(y, z) @ gradient / 60)
    assert found == pytest.approx((ratio - Z * error, ratio + Z * error), abs=1e-12)


def test_normal_of_a_ratio_has_the_width_of_its_spread(rng):
    logs, rows = 2000, 500
    y, z = weighted(rng, (logs, rows))
    terms = [Terms(*columns) for columns in zip(y, z, strict=True)]
    spread = np.std([one.value for one in terms], ddof=1)
    widths = [half(one) / Z for one in normal(terms, 0.95, rng)]
    # The spread is known to 1 / √(2 logs), and the delta method to the order of 1 / rows.
    assert np.mean(widths) == pytest.approx(spread, rel=4 / np.sqrt(2 * logs) + 4 / rows)
    mean_only = np.mean([half(one) / Z for one in normal([Terms(one) for one in y], 0.95, rng)])
    assert mean_only > 1.2 * spread


@pytest.mark.parametrize("reach", [None, (-1.0, 6.0)])
def test_bernstein_is_its_formula_and_wider_than_normal(reach, rng):
    y = rng.exponential(1.0, 25)
    [found] = bernstein([Terms(y, reach=reach)], 0.9, rng)
    log, m = np.log(4 / 0.1), 7.0 if reach else y.max() - y.min()
    expected = np.sqrt(2 * y.var(ddof=1) * log / 25) + 7 * m * log / (3 * 24)
    assert found == pytest.approx((y.mean() - expected, y.mean() + expected), abs=1e-12)
    assert half(found) > half(normal([Terms(y)], 0.9, rng)[0])


def test_bernstein_covers_few_skewed_terms_where_normal_does_not(rng):
    chance, logs = 0.05, 2000
    terms = [Terms(row, reach=(0.0, 1.0)) for row in (rng.random((logs, 30)) < chance) * 1.0]
    covered = {
        method: np.mean([low <= chance <= high for low, high in method(terms, 0.95, rng)])
        for method in (normal, bernstein)
    }
    assert covered[bernstein] >= 0.95
    # Where all 30 are 0 the normal interval is a point, wrong with a chance of 0.95³⁰ = 0.21.
    assert covered[normal] < 0.85


def test_bootstrap_is_normal_for_many_well_behaved_terms(rng):
    columns = 20
    terms = [Terms(row) for row in rng.normal(1.0, 2.0, (columns, 2000))]
    terms += [Terms(*weighted(rng, 2000)) for _ in range(columns)]
    pairs = zip(bootstrap(terms, 0.95, rng), normal(terms, 0.95, rng), strict=True)
    ratios = [half(drawn) / half(closed) for drawn, closed in pairs]
    # Two ends, about independent, and the estimates of independent columns.
    tolerance = 5 * QUANTILE_ERROR / (Z * np.sqrt(2)) / np.sqrt(2 * columns)
    assert tolerance < 0.03
    assert np.mean(ratios) == pytest.approx(1.0, abs=tolerance)


@pytest.mark.parametrize("rows", [8193, 20_000, 24_577])
def test_bootstrap_of_blocks_is_normal_for_independent_rows(rows, rng):
    terms = [Terms(*weighted(rng, rows)), Terms(rng.normal(1.0, 2.0, rows))]
    for drawn, closed in zip(bootstrap(terms, 0.95, rng), normal(terms, 0.95, rng), strict=True):
        tolerance = 5 * QUANTILE_ERROR * half(closed) / Z
        assert drawn == pytest.approx(closed, abs=tolerance)


def test_a_shorter_last_block_does_not_move_the_estimate(rng, monkeypatch):
    monkeypatch.setattr(intervals, "BLOCKS", 8)
    # Seven blocks of seven rows and one of a single row, all of the same mean.
    [constant, ratio] = bootstrap(
        [Terms(np.full(50, 3.0)), Terms(np.arange(50) * 2.0, np.arange(50) * 1.0)], 0.95, rng
    )
    assert constant == pytest.approx((3.0, 3.0), abs=1e-12)
    assert ratio == pytest.approx((2.0, 2.0), abs=1e-12)


def test_blocks_hold_rows_that_depend_on_their_neighbours(rng, monkeypatch):
    y = np.repeat(rng.normal(0.0, 1.0, 500), 10)
    alone = bootstrap([Terms(y)], 0.95, rng)[0]
    monkeypatch.setattr(intervals, "BLOCKS", 500)
    blocks = bootstrap([Terms(y)], 0.95, rng)[0]
    # Ten equal neighbours are one row, so that the truth is √10 times as wide.
    tolerance = 5 * QUANTILE_ERROR / (Z * np.sqrt(2)) * np.sqrt(2)
    assert half(blocks) / half(alone) == pytest.approx(np.sqrt(10), rel=tolerance)


def test_the_same_numbers_give_the_same_bootstrap_intervals_for_all_estimates_at_once(rng):
    terms = [Terms(*weighted(rng, 30)), Terms(rng.normal(0.0, 1.0, 30))]
    together = bootstrap(terms, 0.95, np.random.default_rng(5))
    assert together == bootstrap(terms, 0.95, np.random.default_rng(5))
    alone = [bootstrap([one], 0.95, np.random.default_rng(5))[0] for one in terms]
    assert np.allclose(together, alone, rtol=0, atol=1e-12)
    assert together != bootstrap(terms, 0.95, np.random.default_rng(6))


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("method", INTERVALS.values(), ids=INTERVALS)
def test_one_or_two_rows_are_held_by_their_interval(method, rows, rng):
    terms = [Terms(rng.random(rows)), Terms(*weighted(rng, rows))]
    for one, found in zip(terms, method(terms, 0.95, rng), strict=True):
        assert found.low <= one.value <= found.high


@pytest.mark.parametrize("method", INTERVALS.values(), ids=INTERVALS)
def test_a_denominator_of_zeros_gives_no_interval(method, rng):
    counted, nothing = method([Terms(np.ones(9)), Terms(np.zeros(9), np.zeros(9))], 0.95, rng)
    assert np.all(np.isfinite(counted))
    assert np.all(np.isnan(nothing))


# Intervals that hold at all looks together

LOOKS = range(40, 601, 40)


def missed(method, paths, reach, rng):
    """The share of growing logs in which some look misses the truth, which is 0.2."""
    count = 0
    for path in paths:
        for rows in LOOKS:
            [ends] = method([Terms(path[:rows], reach=reach)], 0.9, rng)
            if not ends.low <= 0.2 <= ends.high:
                count += 1
                break
    return count / len(paths)


@pytest.mark.parametrize("reach", [(0.0, 2.0), None])
def test_the_truth_is_missed_at_any_look_as_rarely_as_was_said(seed, reach):
    rng = np.random.default_rng(seed)
    paths = 2.0 * (rng.random((150, max(LOOKS))) < 0.1)
    error = missed(sequential, paths, reach, rng)
    assert error < 0.1 + 4.5 * np.sqrt(0.1 * 0.9 / len(paths))
    if reach is None:
        # Intervals for a single look miss the truth at some look much more often.
        assert missed(normal, paths, reach, rng) > error + 0.1


def test_a_row_for_many_decisions_counts_as_many(seed):
    rng = np.random.default_rng(seed)
    counts, values = rng.integers(1, 9, 50) * 1.0, rng.random(50)
    [found] = sequential([Terms(values, counts=counts)], 0.95, rng)
    [wanted] = sequential([Terms(np.repeat(values, counts.astype(int)))], 0.95, rng)
    assert found == pytest.approx(wanted)
    [bounded] = sequential([Terms(values, counts=counts, reach=(0.0, 1.0))], 0.95, rng)
    [single] = sequential(
        [Terms(np.repeat(values, counts.astype(int)), reach=(0.0, 1.0))], 0.95, rng
    )
    # Means before a row are computed for all its decisions together, which changes little.
    assert bounded == pytest.approx(single, rel=0.1)


def test_it_shrinks_with_rows_and_is_wider_than_for_one_look(seed):
    rng = np.random.default_rng(seed)
    values = rng.random(20_000)
    widths = []
    for rows in (200, 2000, 20_000):
        terms = [Terms(values[:rows], reach=(0.0, 1.0))]
        [always], [once] = sequential(terms, 0.95, rng), normal(terms, 0.95, rng)
        widths.append(always.high - always.low)
        assert widths[-1] > once.high - once.low
    assert widths[0] > 2 * widths[1] > 4 * widths[2]
    [unknown] = sequential([Terms(values[:1])], 0.95, rng)
    assert unknown.high == np.inf
