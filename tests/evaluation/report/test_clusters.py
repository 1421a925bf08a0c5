"""Logs in which rows of one user depend on each other."""

import numpy as np
import pytest
from refusals import raises_code
from scipy import stats
from sklearn.dummy import DummyRegressor
from summing import summed

from logs import log_of_arrays
from submax.evaluation import Log, compare
from submax.evaluation.log import divided
from submax.evaluation.reward_models import folds_of
from submax.statistics.intervals import normal
from submax.statistics.sums import Terms

USERS, EACH = 60, 8


def table_of(rng, users=USERS, each=EACH):
    """Every user has a mood, and nearly all rewards of a user are equal."""
    mood = rng.random(users) < 0.4
    user = np.repeat(np.arange(users), each)
    action = rng.integers(2, size=users * each)
    return {
        "action": np.array(["A", "B"])[action],
        "reward": mood[user] * 1,
        "propensity": np.full(users * each, 0.5),
        "user": [f"u{one}" for one in user],
    }


def log_of(rng, **sizes):
    return Log.read(table_of(rng, **sizes), columns={"cluster": "user"})


def test_the_variance_is_that_between_clusters(rng):
    cluster = np.repeat(np.arange(30), 5)
    y = rng.normal(size=150) + rng.normal(size=30)[cluster]
    found = summed(Terms(y, reach=(-9.0, 9.0)), cluster)
    assert found.value == pytest.approx(y.mean())
    # Clusters of equal size: the standard error is that of their means.
    means = y.reshape(30, 5).mean(axis=1)
    ends = normal(found, 0.95)
    half = stats.t.ppf(0.975, 29) * means.std(ddof=1) / np.sqrt(30)
    assert ends == pytest.approx((y.mean() - half, y.mean() + half))
    assert found.error == pytest.approx(means.std(ddof=1) / np.sqrt(30))
    single = summed(Terms(y), np.arange(150))
    assert single.error == pytest.approx(summed(Terms(y)).error)


@pytest.mark.parametrize("logs", [50, pytest.param(400, marks=pytest.mark.soak)])
def test_intervals_by_cluster_cover_and_intervals_by_row_do_not(rng, mentioned, logs):
    covered, naive = 0, 0
    options = {"estimators": ["ips"], "reward_model": DummyRegressor()}
    for _ in range(logs):
        table = table_of(rng, 40)
        policy = {"p": np.full((320, 2), 0.5)}
        by_user = compare(Log.read(table, columns={"cluster": "user"}), policy, **options)
        ends = by_user.find("p", "ips").interval
        covered += ends.low <= 0.4 <= ends.high
        narrow = compare(Log.read(table), policy, **options).find("p", "ips").interval
        naive += narrow.low <= 0.4 <= narrow.high
    assert mentioned(by_user.notes, 40)
    assert covered / logs > 0.93 - 4.5 * np.sqrt(0.93 * 0.07 / logs)
    # Eight equal rows count as eight: the interval is √8 times too short and covers half the time.
    assert naive / logs < 0.80


def test_splits_and_folds_keep_clusters_together(rng):
    log = log_of(rng)
    assert np.array_equal(log.cluster, np.repeat(np.arange(USERS), EACH))
    first, rest = log.split(0.5, "random", 3)
    assert len(first) == len(rest) == USERS * EACH // 2
    assert first.cluster.max() == rest.cluster.max() == USERS // 2 - 1
    part = divided(log, [0.5, 0.5], "random", 3).part.reshape(USERS, EACH)
    assert np.all(part == part[:, :1])
    fold = folds_of(log).reshape(USERS, EACH)
    assert np.all(fold == fold[:, :1])
    assert len(np.unique(fold)) == 3


def test_one_cluster_and_rows_without_a_cluster_are_refused(rng, refused):
    with raises_code("invalid-input"):
        log_of(rng, users=1).split(0.5, "random")
    table = table_of(rng)
    table["user"][3] = None
    refused(table, ("user", "row 4"), columns={"cluster": "user"})


def test_differences_are_by_cluster_too(rng):
    log = log_of(rng)
    policies = {"p": np.tile([0.9, 0.1], (len(log), 1))}
    by_user = compare(log, policies, estimators=["ips"], interval="normal").differences[0]
    action = log.action[:, 0].astype(int)
    terms = (np.array([1.8, 0.2])[action] - 1) * log.reward
    means = terms.reshape(USERS, EACH).mean(axis=1)
    assert by_user.error == pytest.approx(means.std(ddof=1) / np.sqrt(USERS))


def test_independent_rows_of_a_cluster_hardly_widen_the_default_interval(rng):
    table = table_of(rng, 40, 150)
    table["reward"] = (rng.random(6000) < 0.3) * 1
    log = Log.read(table, columns={"cluster": "user"})
    policy, options = {"p": np.tile([0.8, 0.2], (6000, 1))}, {"estimators": ["ips"]}
    gamma, normal = (
        compare(log, policy, interval=kind, **options).differences[0]
        for kind in ("gamma", "normal")
    )
    wide, narrow = (one.interval.high - one.interval.low for one in (gamma, normal))
    assert wide < 1.2 * narrow
    assert gamma.is_clear or gamma.rows_needed() > gamma.rows


def test_no_difference_of_rewards_is_beyond_their_bounds(rng):
    log = log_of_arrays(["A", "B"] * 15, [1, 0] * 15, propensity=[0.02, 0.98] * 15)
    found = compare(log, {"p": np.tile([1.0, 0.0], (30, 1))}, estimators=["ips"])
    assert all(-1 <= end <= 1 for one in found.differences for end in one.interval)
