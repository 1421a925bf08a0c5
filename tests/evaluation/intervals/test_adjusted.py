"""Adjustment by covariates that were measured before the decisions."""

import numpy as np
import pytest
from summing import summed

from submax.evaluation import Log, compare
from submax.evaluation.estimators import Evidence, adjustment
from submax.statistics.intervals import normal
from submax.statistics.sums import Terms, sampled

ROWS = 300


def about(weight, covariates, sampling=1.0):
    """Evidence in which nothing but these columns matters."""
    columns = {"covariates": covariates, "sampling_weight": sampling}
    return Evidence(*[weight] * 5, **columns)


def adjusted(terms, *columns):
    return adjustment(terms, about(*columns))(terms, about(*columns))


def log_of(rng, rows=ROWS):
    """A reward that past visits explain to a large part, and the action to a small one."""
    visits, arm = rng.normal(size=rows), rng.integers(2, size=rows)
    reward = 5 + 2 * visits + 0.3 * arm + 0.5 * rng.normal(size=rows)
    return visits, arm, reward


def test_the_value_is_unchanged_in_expectation_and_varies_less(seed):
    rng = np.random.default_rng(seed)
    policy, logs = np.array([0.1, 0.9]), 400
    values, covered = np.empty((logs, 2)), 0
    for number in range(logs):
        visits, arm, reward = log_of(rng)
        weight = 2 * policy[arm]
        plain = Terms(weight * reward)
        better = adjusted(plain, weight, visits[:, None])
        values[number] = plain.value, better.value
        ends = normal(summed(better), 0.95)
        covered += ends.low <= 5.27 <= ends.high
    error = values.std(axis=0) / np.sqrt(logs)
    # The bias of the adjustment is of the order of its variance.
    assert np.all(np.abs(values.mean(axis=0) - 5.27) < 5 * error + values.var(axis=0))
    assert values[:, 1].std() < 0.6 * values[:, 0].std()
    assert covered / logs > 0.94 - 4.5 * np.sqrt(0.95 * 0.05 / logs)


def test_differences_of_policies_have_shorter_intervals(seed):
    visits, arm, reward = log_of(np.random.default_rng(seed))
    table = {
        "action": np.array(["A", "B"])[arm],
        "reward": reward,
        "propensity": np.full(ROWS, 0.5),
        "visits": visits,
    }
    policy = {"B": np.tile([0.0, 1.0], (ROWS, 1))}
    options = {"estimators": ["ips", "snips"], "interval": "normal"}
    plain = compare(Log.read(table, columns={"context": None}), policy, **options)
    columns = {"covariate": "visits"}
    better = compare(Log.read(table, columns=columns), policy, **options)
    for one, other in zip(plain.differences, better.differences, strict=True):
        assert other.error < 0.5 * one.error
    assert any("adjusted by covariates" in note for note in better.notes)
    assert better.estimates[0] == plain.estimates[0]


def test_a_covariate_that_says_nothing_changes_little_and_constants_nothing(seed):
    rng = np.random.default_rng(seed)
    weight, reward = 2 * rng.random(5000), rng.normal(size=5000)
    terms = Terms(weight * reward, reach=(-9.0, 9.0))
    useless = adjusted(terms, weight, rng.normal(size=(5000, 1)))
    constant = adjusted(terms, weight, np.ones((5000, 1)))
    error = terms.numerator.std() / np.sqrt(5000)
    assert useless.value == pytest.approx(constant.value, abs=0.5 * error)
    # All weights are 1: there is nothing to adjust.
    same = adjusted(Terms(reward), np.ones(5000), rng.normal(size=(5000, 2)))
    np.testing.assert_array_equal(same.influence(), reward)


def test_counts_are_those_of_the_expanded_rows(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 5, 40)
    weight, reward, x = 2 * rng.random(40), rng.normal(size=40), rng.normal(size=(40, 2))
    found = adjusted(Terms(weight * reward, counts=counts * 1.0), weight, x)
    rows = np.repeat(np.arange(40), counts)
    wanted = adjusted(Terms((weight * reward)[rows]), weight[rows], x[rows])
    assert found.value == pytest.approx(wanted.value)
    np.testing.assert_allclose(found.influence()[rows], wanted.influence())


def test_a_sample_is_adjusted_without_bias(seed):
    rng = np.random.default_rng(seed)
    policy, logs, values = np.array([0.1, 0.9]), 300, []
    for _ in range(logs):
        visits, arm, reward = log_of(rng)
        # Rows of one arm with many visits were thinned out.
        kept = np.where((arm == 1) & (visits > 0), 0.3, 1.0)
        row = rng.random(ROWS) < kept
        weight, sampling = 2 * policy[arm[row]], 1 / kept[row]
        terms = sampled(Terms(weight * reward[row]), sampling)
        values.append(adjusted(terms, weight, visits[row, None], sampling).value)
    error = np.std(values) / np.sqrt(logs)
    assert abs(np.mean(values) - 5.27) < 5 * error + np.var(values)
