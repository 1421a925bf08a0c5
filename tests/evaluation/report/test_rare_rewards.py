"""Logs whose rewards are rare, missing, or of which one is huge, as a user compares policies."""

import numpy as np
import pytest

from submax.evaluation.intervals import INTERVALS
from submax.evaluation.logs.log import Log
from submax.evaluation.report.comparisons.comparison import compare
from submax.evaluation.report.diagnosis.diagnostics import Diagnostics

ROWS, ARMS = 4000, 4


def log_of(rng, reward):
    propensity = np.full(ROWS, 1 / ARMS)
    return Log.from_arrays(rng.integers(ARMS, size=ROWS), reward, propensity=propensity)


@pytest.fixture
def rng(seed):
    return np.random.default_rng(seed)


def test_a_log_without_any_reward_has_intervals_and_warnings(rng):
    found = compare(log_of(rng, np.zeros(ROWS)), ["random"])
    for one in found.estimates:
        assert one.value == 0.0
        assert any("has another reward than 0" in sentence for sentence in one.cautions)
        if one.estimator != "dm":
            assert one.interval.low == 0.0
            # Fewer than 1 in 2000 rows had a reward; the exact upper bound is 3.7 / 2000.
            assert 0.0005 < one.interval.high < 0.01


def test_few_effective_rewards_are_counted_by_their_weights(rng):
    reward = np.zeros(ROWS)
    reward[rng.choice(ROWS // 2, 12, replace=False) + ROWS // 2] = 1.0
    found = compare(log_of(rng, reward), ["random"], estimators=["ips"])
    about = found.find("random", "ips").diagnostics
    assert about.effective_rewards == pytest.approx(12)
    assert not any("rows with another reward" in one for one in found.estimates[1].cautions)


def test_effective_rewards_are_a_share_of_the_effective_rows():
    about = Diagnostics.of_weights(np.array([1.0, 1.0, 2.0]), np.array([0.0, 1.0, 0.0]))
    assert (about.usual, about.effective_rewards) == (0.0, pytest.approx(0.25 * 16 / 6))
    # The most frequent reward is that with the largest weight, not that of the most rows.
    other = Diagnostics.of_weights(np.array([1.0, 1.0, 4.0]), np.array([0.0, 0.0, 1.0]))
    assert (other.usual, other.effective_rewards) == (1.0, pytest.approx(2 / 6 * 36 / 18))


def test_one_huge_reward_has_a_caution(rng):
    reward = (rng.random(ROWS) < 0.3) * 1.0
    quiet = compare(log_of(rng, reward), ["random"], estimators=["snips"])
    assert not any("one row has the reward" in one for one in quiet.estimates[1].cautions)
    reward[-1] = 1e6
    loud = compare(log_of(rng, reward), ["random"], estimators=["snips"])
    for one in loud.estimates:
        assert any("one row has the reward 1e+06" in sentence for sentence in one.cautions)


def test_two_rewards_of_1_are_rare_and_no_outliers(rng):
    reward = np.zeros(ROWS)
    reward[-2:] = 1.0
    found = compare(log_of(rng, reward), ["random"], estimators=["snips"])
    assert any("rows with another reward than 0" in one for one in found.estimates[1].cautions)
    for one in found.estimates:
        assert not any("one row has the reward" in sentence for sentence in one.cautions)
    # Two rows of a million among 0 and 1 are outliers.
    reward[:ROWS] = np.arange(ROWS) % 2
    reward[-2:] = 1e6
    found = compare(log_of(rng, reward), ["random"], estimators=["snips"])
    assert any("one row has the reward 1e+06" in one for one in found.estimates[0].cautions)


@pytest.mark.parametrize("interval", INTERVALS)
def test_the_value_is_inside_of_its_interval_and_of_the_bounds(interval):
    # In the second half 6 of 10 rows took the better action, which was expected in 5 of 10.
    action = np.array([0, 1] * 50 + [1, 0, 1, 0, 1, 0, 1, 0, 1, 1] * 10)
    log = Log.from_arrays(action, action, propensity=np.full(200, 0.5), rewards="binary")
    found = compare(log, ["rcp-submax"], interval=interval)
    for one in found.estimates:
        assert 0.0 <= one.interval.low <= one.value <= one.interval.high <= 1.0
    one = found.find("rcp-submax", "ips")
    assert one.value == 1.0
    assert any(sentence.startswith("the estimate is 1.2 and was cut") for sentence in one.cautions)


def test_one_estimate_of_each_policy_is_recommended(rng):
    reward = (rng.random(ROWS) < 0.3) * 1.0
    found = compare(log_of(rng, reward), ["random", "rcp-submax"])
    assert [one.policy for one in found.recommended()] == ["logging policy", "random", "rcp-submax"]
    assert [row["recommended"] for row in found.rows()].count(True) == 3
    assert "the recommended estimate of each policy" in repr(found)
