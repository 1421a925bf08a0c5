import itertools

import numpy as np
import pytest

from submax.core.memory.held_out import MAX_HELD_OUT_ROWS, MIN_ROWS_TO_HOLD_OUT, HeldOut


def parted(rows):
    """The places trained on and the places held out, of one replica with so many rows."""
    held_out = HeldOut.of(np.array([rows]))
    number = np.arange(rows - held_out.rows[0])
    places, there = held_out.places()
    return held_out.trained_on(number[None])[0], places[there]


LIMIT = 10 * MAX_HELD_OUT_ROWS
"""From so many rows on, no more are held out."""


@pytest.mark.parametrize("rows", [0, 1, 63, 64, 65, 99, 100, LIMIT - 1, LIMIT, LIMIT + 78])
def test_every_row_is_trained_on_or_held_out_and_not_both(rows):
    trained_on, held = parted(rows)
    assert sorted([*trained_on, *held]) == list(range(rows))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (MIN_ROWS_TO_HOLD_OUT - 1, 0),
        (MIN_ROWS_TO_HOLD_OUT, 6),
        (1000, 100),
        (LIMIT, MAX_HELD_OUT_ROWS),
        (5 * LIMIT, MAX_HELD_OUT_ROWS),
    ],
)
def test_a_tenth_is_held_out_within_limits(rows, expected):
    assert len(parted(rows)[1]) == expected


def test_a_row_that_was_trained_on_is_never_held_out_later():
    sizes = [MIN_ROWS_TO_HOLD_OUT, 70, 71, 500, LIMIT, LIMIT + 9, LIMIT + 10, 2 * LIMIT]
    for before, after in itertools.pairwise(sizes):
        assert not set(parted(before)[0]) & set(parted(after)[1])


def test_beyond_the_limit_the_latest_rows_are_held_out():
    held = parted(2 * LIMIT)[1]
    assert held.min() >= LIMIT


def test_each_replica_has_its_own():
    sizes = [10, 100, 6 * MAX_HELD_OUT_ROWS]
    together = HeldOut.of(np.array(sizes))
    places, there = together.places()
    for replica, rows in enumerate(sizes):
        assert np.array_equal(places[replica][there[replica]], parted(rows)[1])
