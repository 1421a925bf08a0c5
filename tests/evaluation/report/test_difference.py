import re

import numpy as np
import pytest
from refusals import raises_code
from sklearn.dummy import DummyRegressor

from logs import log_of_arrays
from submax.evaluation import compare
from submax.evaluation.report import Difference
from submax.statistics.intervals import ConfidenceInterval

ROWS = 400


def log_of(rng, rows=ROWS, chances=(0.3, 0.4, 0.5)):
    action = rng.integers(len(chances), size=rows)
    reward = (rng.random(rows) < np.array(chances)[action]) * 1
    return log_of_arrays(action, reward, propensity=np.full(rows, 1 / len(chances)))


def array(log, *probabilities):
    return np.tile(probabilities, (len(log), 1))


def test_a_difference_is_that_of_the_rows(rng):
    log = log_of(rng)
    policies = {"p": array(log, 0.2, 0.3, 0.5), "q": array(log, 0.1, 0.3, 0.6)}
    found = compare(log, policies, estimators=["ips"], interval="normal", baseline="q")
    [one] = found.differences
    action, weight = log.action[:, 0].astype(int), {}
    for name, table in policies.items():
        weight[name] = 3 * table[0][action]
    terms = (weight["p"] - weight["q"]) * log.reward
    half = 1.959964 * terms.std(ddof=1) / np.sqrt(ROWS)
    assert (one.policy, one.baseline, one.estimator) == ("p", "q", "ips")
    assert one.value == pytest.approx(terms.mean())
    assert one.interval == pytest.approx((terms.mean() - half, terms.mean() + half))
    # Both policies agree in most decisions, so that the difference is known better than a value.
    value = found.find("p", "ips").interval
    assert one.interval.high - one.interval.low < 0.5 * (value.high - value.low)


def test_by_default_differences_are_from_the_logging_policy(rng):
    log = log_of(rng)
    found = compare(log, {"p": array(log, 0.0, 0.0, 1.0)})
    one = found.difference("p")
    assert one.recommended
    assert one.baseline == "logging policy"
    for each in found.differences:
        expected = found.find("p", each.estimator).value - found.estimates[0].value
        assert each.value == pytest.approx(expected, abs=1e-9)
    assert found.difference("p", "snips").estimator == "snips"
    with raises_code("invalid-input", "policy"):
        found.difference("q")
    with raises_code("invalid-input"):
        found.difference("p", "snip")
    with raises_code("invalid-input", "policy"):
        found.difference("logging policy")
    with raises_code("invalid-input", "baseline"):
        compare(log, {"p": array(log, 0.2, 0.3, 0.5)}, baseline="q")


@pytest.mark.parametrize("logs", [50, pytest.param(400, marks=pytest.mark.soak)])
def test_intervals_of_values_and_differences_cover_the_truth(rng, logs):
    names = ["ips", "snips", "dr"]
    value, logged = 0.2 * 0.3 + 0.3 * 0.4 + 0.5 * 0.5, (0.3 + 0.4 + 0.5) / 3
    covered = np.zeros((2, len(names)))
    for _ in range(logs):
        log = log_of(rng, 200)
        found = compare(log, {"p": array(log, 0.2, 0.3, 0.5)}, estimators=names)
        for counted, several, truth in (
            (covered[0], found.estimates[1:], value),
            (covered[1], found.differences, value - logged),
        ):
            counted += [one.interval.low <= truth <= one.interval.high for one in several]
    # 95 % are expected, and some points less from so few rows; 4.5 standard errors are allowed.
    assert np.all(covered / logs > 0.93 - 4.5 * np.sqrt(0.93 * 0.07 / logs))


def test_the_rows_that_are_needed_find_the_difference_as_often_as_promised(rng):
    effect, spread, logs = 0.1, 1.0, 4000
    ends = ConfidenceInterval.around(0.02, 1.959964 * spread / np.sqrt(100))
    one = Difference("p", "q", "dr", 0.02, ends, spread / np.sqrt(100), 100, 0.95, True)
    rows = round(one.rows_needed(effect))
    means = effect + spread / np.sqrt(rows) * rng.normal(size=logs)
    found = np.mean(means > 1.959964 * spread / np.sqrt(rows))
    assert found == pytest.approx(0.8, abs=4.5 * np.sqrt(0.8 * 0.2 / logs) + 0.005)
    assert one.rows_needed() == pytest.approx(25 * one.rows_needed(effect), rel=1e-6)
    assert one._replace(value=0.0).rows_needed() == np.inf
    # A wider interval needs more rows: never fewer than there are while the sign is not clear.
    wide = one._replace(interval=ConfidenceInterval(-0.01, 1.0), error=0.001)
    assert wide.rows_needed() > wide.rows


def test_all_tables_become_data_frames(rng):
    log = log_of(rng)
    found = compare(log, {"p": array(log, 0.2, 0.3, 0.5)}, estimators=["ips", "dr"])
    assert found.to_pandas()["policy"].tolist() == ["logging policy", "p", "p"]
    assert found.to_pandas("differences")["estimator"].tolist() == ["ips", "dr"]
    with raises_code("invalid-input", "table"):
        found.to_pandas("diferences")


# The best of several policies as the baseline


def test_the_baseline_is_the_policy_with_the_highest_estimate(rng):
    log = log_of(rng, 3000, (0.1, 0.5, 0.48))
    found = compare(log, ["always=*"], estimators=["snips"], baseline="best")
    values = {one.policy: one.value for one in found.recommended()[1:]}
    best = max(values, key=values.get)
    assert {one.baseline for one in found.differences} == {best}
    assert all(one.value <= 0 for one in found.differences)
    not_worse = {one.policy for one in found.differences if one.interval.high >= 0}
    assert set(re.findall(r"always=\d", found.answer)) == {best, *not_worse}
    assert "always=0" not in not_worse
    assert "95 %" in found.answer


def test_the_intervals_of_all_differences_hold_together(rng):
    log = log_of(rng, 600, (0.1, 0.5, 0.48))
    found = compare(log, ["always=*"], estimators=["snips"], baseline="best", interval="normal")
    first = found.differences[0]
    options = {"baseline": first.baseline, "interval": "normal", "level": 0.975}
    alone = compare(log, ["always=*"], estimators=["snips"], **options).difference(first.policy)
    # Two differences at 95 % together are each at 97.5 %; the intervals of values stay at 95 %.
    assert first.interval == pytest.approx(alone.interval)
    assert first.level == pytest.approx(0.975)
    assert found.level == 0.95


@pytest.mark.slow
def test_the_best_of_equal_policies_is_rarely_left_out(rng):
    missed, runs = 0, 40
    options = {"estimators": ["snips"], "baseline": "best", "reward_model": DummyRegressor()}
    for _ in range(runs):
        found = compare(log_of(rng, 800, np.full(4, 0.2)), ["always=*"], **options)
        # All are best; that the first is left out is as bad as for any other.
        not_worse = {one.policy for one in found.differences if one.interval.high >= 0}
        missed += "always=0" not in {*not_worse, found.differences[0].baseline}
    # At most 5 % in expectation: 10 or more of 40 has a chance below 3e-5 by the binomial tail.
    assert missed < 10


def test_the_highest_of_many_estimates_has_an_interval_that_allows_for_the_choice(rng):
    missed, runs, arms = 0, 20, 12
    options = {"estimators": ["snips"], "reward_model": DummyRegressor(), "interval": "normal"}
    for _ in range(runs):
        found = compare(log_of(rng, 2400, np.full(arms, 0.3)), ["always=*"], **options)
        best = max(found.recommended()[1:], key=lambda one: one.value)
        missed += not best.joint.low <= 0.3 <= best.joint.high
        assert best.joint.low < best.interval.low <= best.interval.high < best.joint.high
    # At most 5 % in expectation: 8 or more of 20 has a chance below 4e-6 by the binomial tail.
    assert missed < 8
    assert best.policy in found.answer
