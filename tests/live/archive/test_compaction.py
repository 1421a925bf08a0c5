"""What is read, learned and exported is the same before and after old events were archived."""

import math
import shutil
from itertools import count

from refusals import raises_code

from submax.live.archive import log_reader
from submax.live.log.bandits import log_stream
from submax.live.store.memory_store import MemoryStore
from submax.live.store.store import Store


def learned(bandit):
    """What the ledger of a bandit knows of its log."""
    ledger = bandit.ledger()
    return +ledger.counts, ledger.rows.columns().hash


def check_that_nothing_changes(archived, bandit, place, folder, age):
    before, files = learned(bandit), archived.exported(bandit.store, folder)
    events = archived.in_store(bandit.store)
    moved = archived.compacted(bandit, age)
    assert archived.in_store(bandit.store) == events - moved < events
    for again in range(2):
        assert archived.exported(bandit.store, folder) == files
        assert learned(bandit) == before
        assert archived.damage(bandit.store) == []
        if not again:
            bandit = archived.reopened(bandit, place)
    bandit.close()


def test_nothing_that_is_read_changes(archived, place, options, seed, tmp_path):
    bandit = archived.used(archived.opened(place, **options), seed)
    check_that_nothing_changes(archived, bandit, place, tmp_path, age=2 * archived.WAIT)


def test_nothing_that_is_read_from_postgres_changes(archived, postgres_address, seed, tmp_path):
    bandit = archived.used(archived.opened(postgres_address, reward_wait=0.0), seed, 30)
    # Events have the time of the database, which is far ahead of the clock of the tests.
    check_that_nothing_changes(archived, bandit, postgres_address, tmp_path, age=-math.inf)


def test_the_next_version_has_the_same_bytes(archived, options, clock, seed):
    """Also after a restart; a new action makes a fit from scratch necessary, from all rows."""
    models = []
    for archive, restart in ((False, False), (True, False), (True, True)):
        clock.now = 1e9
        store = MemoryStore(clock)
        bandit = archived.used(archived.opened(store, seed=3, **options), seed)
        if archive:
            bandit.snapshot()
            assert archived.compacted(bandit) > 0
        if restart:
            bandit = archived.reopened(bandit, store)
        bandit.add("D")
        archived.used(bandit, seed + 1, 1)
        models.append([one.model for one in bandit.versions()] + [bandit.refit().fitted.model])
    assert models[0] == models[1] == models[2]


WRITES = [
    name
    for name in dir(Store)
    if name == "append" or name.startswith(("put_", "delete_", "shrink"))
]


def test_a_crash_at_any_step_loses_and_duplicates_nothing(archived, seed, tmp_path, monkeypatch):
    """The log is the same after a crash before anything is written to the store.

    A crash after a call leaves the same file as one before the next call.
    """
    first = tmp_path / "first.db"
    bandit = archived.used(archived.opened(first), seed, 12)
    archived.clock.now += 10 * archived.WAIT
    bandit.decide({"age": 1.0, "country": "de"})
    bandit.ledger()
    files = archived.exported(bandit.store, tmp_path)
    bandit.close()
    crashed, steps = True, 0
    while crashed:
        place = shutil.copy(first, tmp_path / f"{steps}.db")
        bandit = archived.reopened(bandit, place)
        crashed = stopped(archived, bandit, monkeypatch, steps)
        steps += crashed
        bandit = archived.reopened(bandit, place)
        assert archived.exported(bandit.store, tmp_path) == files
        # The next compaction goes on where the last one was stopped.
        archived.compacted(bandit, age=0.0)
        assert archived.exported(bandit.store, tmp_path) == files
        assert archived.damage(bandit.store) == []
        assert archived.in_store(bandit.store) < 4
        bandit.close()
    # Two segments: each is written and recorded, and its events are deleted in several steps.
    assert steps >= 8


def stopped(archived, bandit, monkeypatch, last):
    """Whether a compaction failed before the write to the store with the number ``last``."""
    calls = count()

    def stopping(method):
        def call(*given):
            if next(calls) == last:
                raise RuntimeError("the process has ended")
            return method(*given)

        return call

    with monkeypatch.context() as patched:
        for name in WRITES:
            patched.setattr(bandit.store, name, stopping(getattr(bandit.store, name)))
        try:
            archived.compacted(bandit, age=0.0)
        except RuntimeError:
            return True
    return False


def test_pending_decisions_stay_and_can_be_rewarded(archived, place, clock):
    with archived.opened(place) as bandit:
        for number in range(30):
            clock.now += 1.0
            bandit.decide({"age": 1.0, "country": "de"}, id=f"visit-{number}")
        assert archived.compacted(bandit, age=0.0) == 0
        clock.now += archived.WAIT - 10.0
        bandit.decide({"age": 1.0, "country": "de"})
        bandit.ledger()
        assert archived.compacted(bandit, age=0.0) > 0
        assert bandit.reward("visit-29", 1.0).status == "accepted"
        clock.now += 10 * archived.WAIT
        bandit.ledger()
        archived.compacted(bandit, age=0.0)
        assert archived.in_store(bandit.store) == 1
        assert bandit.ledger().counts["decisions"] == 31
        assert bandit.ledger().rows.columns().reward.sum() == 1.0


def test_an_export_during_a_compaction_misses_nothing(archived, place, seed, tmp_path, monkeypatch):
    bandit = archived.used(archived.opened(place), seed)
    files, store = archived.exported(bandit.store, tmp_path), bandit.store
    steps, moving, moved = archived.compacting(bandit), False, []

    def after_a_step(read):
        """Read after a step of the compaction, unless that is what reads just now."""

        def read_later(stream, after=0, limit=10_000):
            nonlocal moving
            if stream == log_stream("page") and not moving:
                moving = True
                moved.append(next(steps, 0))
                moving = False
            return read(stream, after, limit)

        return read_later

    with monkeypatch.context() as patched:
        patched.setattr(log_reader, "EVENTS_AT_ONCE", 10)
        for name in ("read", "read_columns"):
            patched.setattr(store, name, after_a_step(getattr(store, name)))
        assert archived.exported(store, tmp_path) == files
    assert sum(moved) > 0
    bandit.close()


def test_a_changed_event_is_not_archived(archived, seed, tmp_path, change_events):
    path = tmp_path / "page.db"
    with archived.used(archived.opened(path), seed) as bandit:
        changed = bandit.store.read(log_stream("page"))[1].position
        assert change_events(path, lambda event: {"at": event.at + 1}, position=changed) > 0
        events = archived.in_store(bandit.store)
        with raises_code("invalid-input"):
            archived.compacted(bandit)
        assert archived.in_store(bandit.store) == events


def test_what_cannot_be_read_back_from_the_archive_is_not_deleted(
    archived, clock, seed, monkeypatch
):
    store = MemoryStore(clock)
    bandit = archived.used(archived.opened(store), seed)
    before = store.read(log_stream("page"))
    put = store.put_segment
    monkeypatch.setattr(store, "put_segment", lambda name, one, data: put(name, one, data[:-1]))
    with raises_code("invalid-input"):
        archived.compacted(bandit)
    assert store.read(log_stream("page")) == before
