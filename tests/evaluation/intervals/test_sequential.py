"""Intervals that hold at all looks together."""

import numpy as np
import pytest

from submax.evaluation.contracts.terms import Terms
from submax.evaluation.intervals import normal, sequential

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
