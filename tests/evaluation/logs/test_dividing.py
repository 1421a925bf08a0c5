"""Parts of a log for a cross-validation."""

import numpy as np
import pytest

from submax.evaluation import Log
from submax.evaluation.logs.dividing import divided


def log_of(rng, rows=120, **columns):
    table = {
        "action": rng.choice(["A", "B"], rows),
        "reward": rng.integers(2, size=rows),
        "propensity": np.full(rows, 0.5),
        **columns,
    }
    return Log.read(table, columns={name: name for name in columns})


@pytest.mark.parametrize("by", ["time", "random"])
def test_every_decision_of_a_counted_row_is_in_one_part(rng, by, seed):
    log = log_of(rng, rows=20, count=rng.integers(1, 400, size=20))
    found = divided(log, 4, by, seed)
    counts = np.bincount(found.number, found.log.count)
    np.testing.assert_array_equal(counts, log.count)
    sizes = np.bincount(found.part, found.log.count)
    # A random part has a binomial number of decisions; a part by time a quarter, up to rounding.
    error = np.sqrt(log.decisions * 0.25 * 0.75) if by == "random" else 1.0
    assert np.all(np.abs(sizes - log.decisions / 4) <= 5 * error)


def test_sessions_and_clusters_are_not_divided(rng, seed):
    session = np.repeat(np.arange(40), 3)
    for by in ("time", "random"):
        found = divided(log_of(rng, session=session), 4, by, seed)
        assert np.all(np.ptp(found.part.reshape(40, 3), axis=1) == 0)
    found = divided(log_of(rng, cluster=rng.permutation(session)), 4, "random", seed)
    for one in range(40):
        assert np.ptp(found.part[found.log.cluster == one]) == 0
