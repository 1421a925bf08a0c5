import numpy as np
from summing import summed

from submax.core.numerics import draw
from submax.evaluation.estimators import Evidence, make_off_policy
from submax.statistics.intervals import normal

ROWS = 500
RIGHT = tuple(make_off_policy(name) for name in ("ips", "snips", "dr"))
WRONG = make_off_policy("dm")
"""Its model of rewards is wrong."""

# Five contexts, four actions; the weights are between 0.25 and 2.5.
SHARE = np.array([0.3, 0.25, 0.2, 0.15, 0.1])
LOGGED = np.array([np.roll([0.4, 0.2, 0.2, 0.2], x) for x in range(5)])
POLICY = np.array([np.roll([0.1, 0.5, 0.3, 0.1], x) for x in range(5)])
CHANCE = np.linspace(0.2, 0.8, 20).reshape(4, 5).T
MODEL = np.linspace(0.6, 0.3, 20).reshape(5, 4)
TRUTH = float(SHARE @ (POLICY * CHANCE).sum(axis=1))


def terms_of_logs(seed, logs, estimators):
    """The terms of the estimators for each log, in turn."""
    rng = np.random.default_rng(seed)
    x = draw(np.tile(SHARE, (logs, 1, 1)), ROWS, rng)
    a = draw(LOGGED[x], ROWS, rng)
    columns = (
        (rng.random((logs, ROWS)) < CHANCE[x, a]) * 1.0,
        (POLICY / LOGGED)[x, a],
        POLICY[x, a],
        MODEL[x, a],
        (POLICY * MODEL).sum(axis=1)[x],
    )
    for one in zip(*columns, strict=True):
        evidence = Evidence(*one)
        yield [estimator.terms(evidence) for estimator in estimators]


def test_normal_intervals_cover_as_often_as_they_say(seed):
    logs = 1500
    terms = terms_of_logs(seed, logs, [*RIGHT, WRONG])
    found = np.array([[normal(summed(one), 0.95) for one in some] for some in terms])
    held = (found[..., 0] <= TRUTH) & (found[..., 1] >= TRUTH)
    *covered, of_wrong_model = held.mean(axis=0)
    error = np.sqrt(0.95 * 0.05 / logs)
    assert np.abs(np.array(covered) - 0.95).max() < 5 * error
    assert of_wrong_model < 0.5
