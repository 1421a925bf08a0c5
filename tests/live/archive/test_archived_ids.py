"""A reward for an archived decision is late, and one for any other id is not."""

from unittest import mock

import numpy as np
import pytest

from submax.live.archive import archived_ids
from submax.live.archive.archived_ids import ArchivedIds, hash_of_id
from submax.live.declaring.names import new_identifier
from submax.live.log.bandits import log_stream
from submax.live.log.records import DECISION, identifier_of


def decided(store):
    """The ids of the decisions that are in the store."""
    events = store.read(log_stream("page"))
    return {identifier_of(event.key) for event in events if event.kind == DECISION}


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_rewards_of_archived_decisions_are_late(archived, place, options, seed):
    bandit = archived.used(archived.opened(place, **options), seed)
    before = decided(bandit.store)
    archived.compacted(bandit)
    moved = before - decided(bandit.store)
    assert len(moved) > 10
    for identifier in moved:
        assert bandit.reward(identifier, 1.0, key="again").status == "late"
        assert bandit.reward(identifier, 1.0, key="again").status == "late"
    for identifier in ("visit-unknown", new_identifier()):
        assert bandit.reward(identifier, 1.0).status == "quarantined"
    if not isinstance(place, str):
        return
    again = archived.reopened(bandit, place)
    assert {again.reward(one, 0.0, key="later").status for one in moved} == {"late"}


def test_few_segments_are_read_at_once_and_the_newest_first(archived, place, options, seed):
    bandit = archived.used(archived.opened(place, **options), seed)
    written = archived.compacted(bandit).written
    with mock.patch.object(archived_ids, "SEGMENTS_AT_ONCE", 1):
        ids = ArchivedIds(bandit.store, "page")
        for number in range(1, len(written) + 1):
            assert "visit-unknown" not in ids
            assert ids._read == {one.number for one in written[-number:]}
    decisions = sum(one.decisions for one in written)
    assert len(ids._hashes) == decisions
    with mock.patch.object(archived_ids, "MOST_IDS", decisions - 1):
        limited = ArchivedIds(bandit.store, "page")
        for _ in written:
            assert "visit-unknown" not in limited
        assert 0 < len(limited._hashes) < decisions


def test_hashes_of_ids_that_differ_in_one_place_differ(seed):
    rng = np.random.default_rng(seed)
    ids = [new_identifier() for _ in range(2000)]
    ids += [f"{one[:-1]}{rng.choice([*'0123456789abcdef'])}" for one in ids]
    ids += [f"visit-{number}" for number in range(2000)]
    assert len({int(hash_of_id(one)) for one in set(ids)}) == len(set(ids))
