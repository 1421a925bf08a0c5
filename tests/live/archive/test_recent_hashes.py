"""The newest hashes are kept, whatever the order in which segments come."""

import numpy as np

from submax.live.archive.compacting.recent_hashes import GROUPS, RecentHashes


def made(segment, count):
    """Hashes that say to which segment they belong."""
    return np.arange(count, dtype=np.uint64) * np.uint64(1000) + np.uint64(segment)


def test_a_process_that_runs_on_forgets_the_oldest_segments_and_not_the_newest():
    found = RecentHashes(limit=1600)
    for segment in range(100):
        assert found.has_room(segment, 40)
        found.add(segment, made(segment, 40))
        assert len(found) <= 1600
    kept = [segment for segment in range(100) if np.uint64(segment) in found]
    # At most one group of 1600 / GROUPS hashes is gone too early.
    assert kept == list(range(100 - len(kept), 100))
    assert 40 * len(kept) > 1600 - 1600 / GROUPS - 40


def test_older_segments_are_added_while_there_is_room():
    found = RecentHashes(limit=160)
    found.add(9, made(9, 50))
    for segment in (8, 7):
        assert found.has_room(segment, 50)
        found.add(segment, made(segment, 50))
    assert not found.has_room(6, 50)
    found.add(10, made(10, 50))
    assert [np.uint64(one) in found for one in (7, 8, 9, 10)] == [False, True, True, True]


def test_a_segment_that_is_larger_than_the_limit_is_kept_alone():
    found = RecentHashes(limit=10)
    found.add(0, made(0, 5))
    found.add(1, made(1, 30))
    assert np.uint64(1) in found
    assert np.uint64(0) not in found
