"""Aggregated tables, whose rows stand for many equal decisions, against the expanded log."""

import numpy as np
import pytest
from refusals import raises_code
from sklearn.linear_model import Ridge
from summing import summed

from submax.evaluation import Log, compare, learn
from submax.evaluation.log import divided, divided_by_fold, expanded
from submax.evaluation.propensities import with_estimated_propensities
from submax.statistics.intervals import gamma
from submax.statistics.sums import Terms, sampled

ARMS = np.array(["A", "B", "C"])
PROPENSITY = np.array([0.5, 0.3, 0.2])
MODEL_FREE = ["ips", "snips", "clipped", {"kind": "clipped", "threshold": 2.0}]
WITH_MODEL = ["dm", "dr", "switch-dr", "dr-shrinkage"]


def aggregated(rng, rows=40, most=60):
    """A table of arms by user, with impressions and clicks, as a data warehouse returns it."""
    arm = rng.choice(3, rows, p=PROPENSITY)
    impressions = rng.integers(0, most, rows)
    return {
        "action": ARMS[arm],
        "impressions": impressions,
        "clicks": rng.binomial(impressions, 0.1 + 0.1 * arm),
        "propensity": PROPENSITY[arm],
        "context_age": rng.integers(20, 60, rows) / 1.0,
        "user": rng.integers(12, size=rows),
    }


def one_by_one(table):
    """The same log with a row for every impression, those with clicks first."""
    each = np.asarray(table["impressions"])
    rows = {name: np.repeat(column, each) for name, column in table.items()}
    clicked = [
        np.arange(shown) < clicks
        for shown, clicks in zip(each, np.asarray(table["clicks"]), strict=True)
    ]
    rows["reward"] = np.concatenate(clicked) * 1.0
    return {name: rows[name] for name in rows if name not in ("impressions", "clicks")}


def by_age(columns):
    probability = np.tile([0.2, 0.3, 0.5], (len(columns["age"]), 1))
    probability[columns["age"] > 40] = [0.6, 0.3, 0.1]
    return probability


COUNTED = {"count": "impressions", "successes": "clicks"}


@pytest.fixture
def table(seed):
    return aggregated(np.random.default_rng(seed))


def assert_same(found, wanted, tolerance=1e-9):
    for one, other in zip(found.rows(), wanted.rows(), strict=True):
        assert one.keys() == other.keys()
        for key, value in other.items():
            if isinstance(value, float):
                assert one[key] == pytest.approx(value, rel=tolerance, abs=tolerance), key
            else:
                assert one[key] == value, key
    for one, other in zip(found.differences, wanted.differences, strict=True):
        assert one.rows == other.rows
        assert (one.value, *one.interval, one.error) == pytest.approx(
            (other.value, *other.interval, other.error), rel=tolerance, abs=tolerance
        )


@pytest.mark.parametrize("interval", ["gamma", "normal"])
def test_a_counted_log_is_evaluated_as_the_expanded_one(table, interval):
    counted, plain = Log.read(table, columns=COUNTED), Log.read(one_by_one(table))
    assert counted.decisions == len(plain) == table["impressions"].sum()
    assert len(counted) <= 2 * len(table["action"])
    options = {"estimators": MODEL_FREE, "interval": interval}
    assert_same(compare(counted, [by_age], **options), compare(plain, [by_age], **options))


def test_with_clusters_estimators_with_models_agree_too(table):
    del table["context_age"]
    log = Log.read(table, columns={**COUNTED, "cluster": "user"})
    plain = Log.read(one_by_one(table), columns={"cluster": "user"})
    policy = {"p": np.array([0.2, 0.2, 0.6])}
    options = {"estimators": [*MODEL_FREE, *WITH_MODEL]}
    whole, single = (
        compare(one, {"p": np.tile(policy["p"], (len(one), 1))}, **options) for one in (log, plain)
    )
    assert_same(whole, single, tolerance=1e-6)


def test_estimated_propensities_are_those_of_the_expanded_log(table):
    del table["propensity"], table["context_age"]
    counted, plain = Log.read(table, columns=COUNTED), Log.read(one_by_one(table))
    found, wanted = (with_estimated_propensities(one, 0) for one in (counted, plain))
    for arm in range(3):
        assert np.unique(found.propensity[found.action[:, 0] == arm]) == pytest.approx(
            np.unique(wanted.propensity[wanted.action[:, 0] == arm]), rel=1e-4
        )


def test_models_are_fitted_to_all_decisions_of_other_folds(seed):
    # Three rows of each reward: with whole rows in a fold, a model would not know some arms.
    rng = np.random.default_rng(seed)
    shown, rates = np.array([4000, 5000, 6000]), np.array([0.1, 0.3, 0.5])
    clicks = rng.binomial(shown, rates)
    table = {"action": ARMS, "n": shown, "clicks": clicks, "propensity": shown / shown.sum()}
    log = Log.read(table, columns={"count": "n", "successes": "clicks"})
    found = compare(log, {"C": np.tile([0.0, 0.0, 1.0], (len(log), 1))}, estimators=["dm", "dr"])
    mean = clicks[2] / shown[2]
    for one in found.estimates[1:]:
        assert one.value == pytest.approx(mean, abs=5 * np.sqrt(0.25 / shown[2]))
    parts = divided_by_fold(log, 3, np.arange(len(log)))
    totals = np.bincount(parts.number, parts.log.count)
    np.testing.assert_array_equal(totals, log.count)


@pytest.mark.parametrize("by", ["time", "random"])
def test_a_split_divides_decisions(table, seed, by):
    log = Log.read(table, columns=COUNTED)
    first, rest = log.split(0.3, by, seed)
    assert first.decisions == round(0.3 * log.decisions)
    assert first.decisions + rest.decisions == log.decisions
    parts = divided(log, [0.25] * 4, by, seed)
    np.testing.assert_array_equal(np.bincount(parts.number, parts.log.count), log.count)
    sizes = np.bincount(parts.part, parts.log.count)
    assert np.all(np.abs(sizes - log.decisions / 4) <= 1)
    if by == "time":
        plain = Log.read(one_by_one(table)).split(0.3, by, seed)[0]
        np.testing.assert_array_equal(expanded(first).reward, plain.reward)


def test_a_policy_learns_from_every_decision(table):
    counted, plain = Log.read(table, columns=COUNTED), Log.read(one_by_one(table))
    tables = [learn(log, "rcp-submax").probabilities(np.zeros((1, 1))) for log in (counted, plain)]
    np.testing.assert_array_equal(*tables)
    found, wanted = (
        compare(log, ["rcp-submax"], estimators=["ips", "snips"]) for log in (counted, plain)
    )
    assert_same(found, wanted)


@pytest.mark.parametrize(
    ("columns", "change", "facts"),
    [
        ({"successes": "clicks"}, {}, ()),
        ({**COUNTED, "reward": "clicks"}, {}, ()),
        (COUNTED, {"clicks": 99}, ("clicks", "row 1")),
        (COUNTED, {"impressions": -1}, ("impressions", "row 1")),
        (COUNTED, {"impressions": 3.5}, ("impressions", "row 1")),
        ({**COUNTED, "weight": "w"}, {"w": 0.0}, ("w", "row 1")),
    ],
)
def test_impossible_counts_and_weights_are_refused(table, columns, change, facts, mentioned):
    table["w"] = np.ones(len(table["clicks"]))
    for name, value in change.items():
        table[name] = [value, *table[name][1:]]
    with raises_code("invalid-input", None if facts else "successes") as refused:
        Log.read(table, columns=columns)
    assert mentioned([str(refused.value)], *facts)


def test_a_sample_with_weights_estimates_the_whole_log(seed):
    rng = np.random.default_rng(seed)
    rows, logs, covered, values = 400, 400, 0, []
    for _ in range(logs):
        reward = (rng.random(rows) < 0.36) * 1.0
        # All rewarded rows are kept, and a quarter of the others.
        keep = (reward == 1) | (rng.random(rows) < 0.25)
        weight = np.where(reward == 1, 1.0, 4.0)[keep]
        found = sampled(Terms(reward[keep], reach=(0.0, 1.0)), weight)
        ends = gamma(summed(found), 0.95)
        covered += ends.low <= 0.36 <= ends.high
        values.append(found.value)
    # The bias of a ratio is of the order of its variance.
    bias = np.var(values)
    assert np.mean(values) == pytest.approx(0.36, abs=5 * np.std(values) / np.sqrt(logs) + bias)
    assert covered / logs > 0.94 - 4.5 * np.sqrt(0.95 * 0.05 / logs)


def test_equal_sampling_weights_change_nothing(table):
    plain = one_by_one(table)
    weighted = {**plain, "w": np.full(len(plain["reward"]), 3.0)}
    options = {"estimators": [*MODEL_FREE, "dr"], "reward_model": Ridge()}
    found = compare(Log.read(weighted, columns={"weight": "w"}), [by_age], **options)
    assert_same(found, compare(Log.read(plain), [by_age], **options))
