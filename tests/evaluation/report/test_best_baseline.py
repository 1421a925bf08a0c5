"""The best of several policies, and which others can be the best one."""

import re

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor

from submax.evaluation import Log, compare

CHANCES = np.array([0.1, 0.5, 0.48])


def log_of(rng, rows, chances):
    action = rng.integers(len(chances), size=rows)
    reward = rng.random(rows) < chances[action]
    return Log.from_arrays(action, reward, propensity=np.full(rows, 1 / len(chances)))


def test_the_baseline_is_the_policy_with_the_highest_estimate(seed):
    log = log_of(np.random.default_rng(seed), 3000, CHANCES)
    found = compare(log, ["always=*"], estimators=["snips"], baseline="best")
    values = {one.policy: one.value for one in found.recommended()[1:]}
    best = max(values, key=values.get)
    assert {one.baseline for one in found.differences} == {best}
    assert all(one.value <= 0 for one in found.differences)
    not_worse = {one.policy for one in found.differences if one.interval.high >= 0}
    assert set(re.findall(r"always=\d", found.notes[-1])) == {best, *not_worse}
    assert "always=0" not in not_worse


def test_the_intervals_of_all_differences_hold_together(seed):
    log = log_of(np.random.default_rng(seed), 600, CHANCES)
    found = compare(log, ["always=*"], estimators=["snips"], baseline="best", interval="normal")
    (alone,) = [
        one
        for one in compare(
            log,
            ["always=*"],
            estimators=["snips"],
            baseline=found.differences[0].baseline,
            interval="normal",
            level=0.975,
        ).differences
        if one.policy == found.differences[0].policy
    ]
    # Two differences at 95 % together are each at 97.5 %; the intervals of values stay at 95 %.
    assert found.differences[0].interval == pytest.approx(alone.interval)
    assert found.differences[0].level == pytest.approx(0.975)
    assert found.level == 0.95


@pytest.mark.slow
def test_the_best_of_equal_policies_is_rarely_left_out(seed, mentioned):
    rng, missed, runs = np.random.default_rng(seed), 0, 40
    options = {"estimators": ["snips"], "baseline": "best", "reward_model": DummyRegressor()}
    for _ in range(runs):
        found = compare(log_of(rng, 800, np.full(4, 0.2)), ["always=*"], **options)
        # All are best; that the first is left out is as bad as for any other.
        missed += not mentioned(found.notes[-1:], "always=0")
    # At most 5 % in expectation: 10 or more of 40 has a chance below 3e-5 by the binomial tail.
    assert missed < 10


def test_a_clear_winner_is_named_alone(seed, mentioned):
    log = log_of(np.random.default_rng(seed), 3000, np.array([0.1, 0.9]))
    notes = compare(log, ["always=*"], estimators=["snips"], baseline="best").notes
    assert mentioned(notes[-1:], "always=1", "95")
    assert not mentioned(notes[-1:], "always=0")
