import numpy as np
import pytest
from scipy import stats
from summing import summed

from submax.evaluation.estimators import Evidence, make_off_policy
from submax.statistics import intervals
from submax.statistics.sums import Terms


def of_terms(method):
    return lambda terms, level=0.95: method(summed(terms), level)


normal, gamma, sequential = map(of_terms, (intervals.normal, intervals.gamma, intervals.sequential))


Z = stats.norm.ppf(0.975)


def weighted(rng, shape):
    """Weighted rewards and their weights, which go together."""
    weight = rng.gamma(2.0, 0.5, shape)
    return weight * (rng.random(shape) < 0.3 + 0.4 * (weight > 1)), weight


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


@pytest.mark.parametrize("method", intervals.INTERVALS.values(), ids=intervals.INTERVALS)
def test_one_or_two_rows_are_held_and_a_denominator_of_zeros_gives_none(method, rng):
    for rows in (1, 2):
        for one in (Terms(rng.random(rows)), Terms(*weighted(rng, rows))):
            found = method(summed(one), 0.95)
            assert found.low <= one.value <= found.high
    assert np.all(np.isfinite(method(summed(Terms(np.ones(9))), 0.95)))
    assert np.all(np.isnan(method(summed(Terms(np.zeros(9), np.zeros(9))), 0.95)))


# Rare rewards


def shifted_gamma(tail, mean, second, third):
    """The quantile of a gamma distribution whose shape is that of a count with these cumulants."""
    skewness = 2 * third / second**1.5
    return mean + np.sqrt(second) * stats.pearson3.ppf(1 - tail, skewness)


@pytest.mark.parametrize("count", [1, 3, 20, 900])
@pytest.mark.parametrize("unit", [1.0, 20.0])
def test_the_ends_are_quantiles_with_the_cumulants_of_the_mean_and_half_an_observation(count, unit):
    rows, tail = 1000, 0.025
    term = np.zeros(rows)
    term[:count] = unit
    found = gamma(Terms(term, reach=(0.0, unit)))
    distance = term - term.mean()
    second, third = (distance**2).sum() / rows / (rows - 1), (distance**3).sum() / rows**3
    up, down = 0.5 * (unit - term.mean()) / rows, 0.5 * term.mean() / rows
    high = shifted_gamma(tail, term.mean() + up, second + up**2, third + up**3)
    low = -shifted_gamma(tail, down - term.mean(), second + down**2, down**3 - third)
    assert found == pytest.approx((low, high), rel=1e-9)


@pytest.mark.parametrize("reward", [0.0, 0.1, 1.0])
def test_if_all_rewards_are_equal_the_ends_are_exact(reward):
    """The mean of numbers such as 0.1 has a rounding error, which is no difference of rewards."""
    found = gamma(Terms(np.full(1000, reward), reach=(0.0, 1.0)))
    missing = stats.gamma.ppf(0.975, 1) / 1000
    ends = reward - missing * reward, reward + missing * (1 - reward)
    assert np.allclose(found, ends, rtol=0, atol=1e-12)


@pytest.mark.parametrize("expected", [0.5, 1.0, 1.9, 2.2, 2.6, 3.0, 3.6])
def test_the_rate_of_a_log_that_may_have_no_reward_is_covered(expected):
    rows, most = 10**4, 60
    covered = 0.0
    for count in range(most):
        counts = np.array([rows - count, count], dtype=np.float64)
        terms = Terms(np.array([0.0, 1.0]), reach=(0.0, 1.0), counts=counts)
        found = gamma(terms)
        if found.low * rows <= expected <= found.high * rows:
            covered += stats.poisson.pmf(count, expected)
    # Counts are whole numbers, so that no interval covers 95 % at every rate; 93 % is the goal.
    assert covered > 0.93


def test_for_common_rewards_it_is_the_normal_interval(rng):
    reward = (rng.random(50_000) < 0.5) * 1.0
    terms = [Terms(reward, reach=(0.0, 1.0)), Terms(rng.normal(1.0, 2.0, 50_000))]
    for skewed, plain in ((gamma(one), normal(one)) for one in terms):
        assert np.allclose(skewed, plain, rtol=0, atol=0.02 * (plain.high - plain.low))


def rare_evidence(rng, rate, rows=1500, arms=10):
    """Evidence of a uniform log about a policy that takes one arm often; and its value."""
    arm = rng.integers(arms, size=rows)
    policy = np.full(arms, 0.5 / arms) + 0.5 * np.eye(arms)[0]
    rates = rate * np.linspace(0.5, 1.5, arms)
    reward, guess = (rng.random(rows) < rates[arm]) * 1.0, np.full(rows, rate)
    weight = (policy * arms)[arm]
    return Evidence(reward, weight, policy[arm], guess, guess, bounds=(0.0, 1.0)), policy @ rates


def test_intervals_of_rare_rewards_cover_the_truth(rng):
    logs, rate = 400, 0.002
    thresholds = [{"kind": kind, "threshold": 4} for kind in ("clipped", "switch-dr")]
    estimators = [make_off_policy(one) for one in ("ips", "snips", "dr", *thresholds)]
    covered, normal_covered = np.zeros(5), np.zeros(5)
    for _ in range(logs):
        evidence, truth = rare_evidence(rng, rate)
        terms = [one.terms(evidence) for one in estimators]
        for counted, method in ((covered, gamma), (normal_covered, normal)):
            ips, snips, dr, clipped, switch = map(method, terms)
            # A threshold adds a bias, so a comparison joins its interval with that without it.
            shown = ips, snips, dr, clipped.joined(ips), switch.joined(dr)
            counted += [low <= truth <= high for low, high in shown]
    # At least 93 % are expected; 4.5 standard errors of the share that is observed are allowed.
    allowed = 0.93 - 4.5 * np.sqrt(0.93 * 0.07 / logs)
    assert np.all(covered / logs > allowed)
    # The log has three rewards on average, and often none: the normal interval of ips and snips
    # is a point.
    assert np.all(normal_covered[:2] / logs < allowed)


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
