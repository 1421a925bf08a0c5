"""What is read, learned and exported is the same before and after old events were archived."""

import math
import shutil
from contextlib import closing
from itertools import count

import msgspec
import pytest
from refusals import raises_code

from submax.live.archive.archive import Archive
from submax.live.archive.log_reader import LogReader
from submax.live.log.bandits import log_stream
from submax.live.log.export import Export
from submax.live.log.ledger import ledger_of
from submax.live.log.snapshot import Snapshot
from submax.live.operating.doctor import examined
from submax.live.store.memory_store import MemoryStore
from submax.live.store.sqlite_store import SQLiteStore


def log_of(store, name="page"):
    reader, events = LogReader(store, name), []
    while page := reader.read(events[-1].position if events else 0):
        events += page
    return events


def exported(store, folder, name="page"):
    """The bytes of both files of an export."""
    export = Export(store, name)
    export.write(folder / "decisions.parquet")
    export.write_rewards(folder / "rewards.parquet")
    return [(folder / f"{one}.parquet").read_bytes() for one in ("decisions", "rewards")]


def replayed(store, settings):
    """The state of a ledger that has read the whole log, as bytes."""
    ledger = ledger_of(store, "page", settings)
    ledger.follow()
    return msgspec.msgpack.encode(Snapshot.of(ledger))


def damage(store):
    return [one.sentence for one in examined(store, ["page"]) if one.kind == "damage"]


def test_nothing_that_is_read_changes(archived, place, options, clock, seed, tmp_path):
    bandit = archived.used(archived.opened(place, **options), seed)
    before = log_of(bandit.store)
    state, files = replayed(bandit.store, bandit.settings), exported(bandit.store, tmp_path)
    moved = archived.compacted(bandit)
    assert len(moved.written) > 2
    left = bandit.store.read(log_stream("page"))
    assert len(left) == len(before) - sum(one.events for one in moved.written) < len(before)
    for again in range(2):
        assert log_of(bandit.store) == before
        assert replayed(bandit.store, bandit.settings) == state
        assert exported(bandit.store, tmp_path) == files
        assert damage(bandit.store) == []
        if not again:
            bandit = archived.reopened(bandit, place)
    bandit.close()


def test_nothing_that_is_read_from_postgres_changes(
    archived, postgres_address, clock, seed, tmp_path
):
    bandit = archived.used(archived.opened(postgres_address, reward_wait=0.0), seed)
    before, files = log_of(bandit.store), exported(bandit.store, tmp_path)
    # Events have the time of the database, which is far ahead of the clock of the tests.
    assert archived.compacted(bandit, age=-math.inf).written
    assert len(bandit.store.read(log_stream("page"))) == 1
    bandit = archived.reopened(bandit, postgres_address)
    assert log_of(bandit.store) == before
    assert exported(bandit.store, tmp_path) == files
    assert damage(bandit.store) == []
    bandit.close()


@pytest.mark.parametrize("restart", [False, True])
def test_the_next_version_has_the_same_bytes(archived, options, clock, seed, restart):
    models = []
    for archive in (False, True):
        clock.now = 1e9
        store = MemoryStore(clock)
        bandit = archived.used(archived.opened(store, seed=3, **options), seed)
        if archive:
            assert archived.compacted(bandit).written
        if restart:
            bandit = archived.reopened(bandit, store)
        bandit.add("D")
        archived.used(bandit, seed + 1, 1)
        models.append([one.model for one in bandit.versions()] + [bandit.refit().fitted.model])
    assert models[0] == models[1]


class StopError(Exception):
    pass


CALLS = ("put_segment", "get_segment", "append", "delete_events")


def test_a_crash_at_any_step_loses_and_duplicates_nothing(
    archived, clock, seed, tmp_path, monkeypatch
):
    """The log is the same after a crash before any call of the store.

    A crash after a call leaves the same file as one before the next call.
    """
    first = str(tmp_path / "first.db")
    bandit = archived.used(archived.opened(first), seed, 25)
    before, files = log_of(bandit.store), exported(bandit.store, tmp_path)
    crashed, steps = True, 0
    while crashed:
        bandit.close()
        place = shutil.copy(first, tmp_path / f"{steps}.db")
        bandit = archived.reopened(bandit, str(place))
        crashed = stopped(archived, bandit, monkeypatch, steps)
        steps += crashed
        for _ in range(2):
            bandit = archived.reopened(bandit, str(place))
            assert log_of(bandit.store) == before
            assert damage(bandit.store) == []
            assert exported(bandit.store, tmp_path) == files
            archived.compacted(bandit, age=0.0)
        end = Archive(bandit.store, "page")
        end.follow()
        assert bandit.store.read(log_stream("page"))[0].position > end.end > 0
    bandit.close()
    # Two segments: each is written, read, recorded and deleted in several steps.
    assert steps >= 8


def stopped(archived, bandit, monkeypatch, last):
    """Whether a compaction failed before the call of the store with the number ``last``."""
    with monkeypatch.context() as patched:
        calls = count()
        for name in CALLS:
            method = stopping(getattr(bandit.store, name), calls, last)
            patched.setattr(bandit.store, name, method)
        try:
            archived.compacted(bandit, age=0.0)
        except StopError:
            return True
    return False


def stopping(method, calls, last):
    """A method that fails before the call with the number ``last``."""

    def call(*given):
        if next(calls) == last:
            raise StopError
        return method(*given)

    return call


def test_pending_decisions_and_the_last_event_stay(archived, place, clock, seed):
    bandit = archived.opened(place)
    for number in range(30):
        clock.now += 1.0
        bandit.decide({"age": 1.0, "country": "de"}, id=f"visit-{number}")
    assert not archived.compacted(bandit, age=0.0).written
    clock.now += archived.WAIT - 10.0
    bandit.ledger()
    bandit.decide({"age": 1.0, "country": "de"})
    bandit.ledger()
    moved = archived.compacted(bandit, age=0.0)
    settled = bandit.ledger().settled
    assert moved.archive.end <= settled
    clock.now += 10 * archived.WAIT
    bandit.ledger()
    archived.compacted(bandit, age=0.0)
    left = bandit.store.read(log_stream("page"))
    assert len(left) == 1
    assert bandit.ledger().counts["decisions"] == 31
    bandit.close()


def test_a_reader_that_began_before_the_compaction_misses_nothing(archived, place, clock, seed):
    bandit = archived.used(archived.opened(place), seed)
    before = log_of(bandit.store)
    moving = archived.compaction(bandit)
    store, reader, read = bandit.store, LogReader(bandit.store, "page"), []
    original = store.read

    def slowly(stream, after=0, limit=10_000):
        """Let the compaction go on between two reads of the log, and within each of them."""
        if stream != log_stream("page") or limit != 10_000:
            return original(stream, after, limit)
        next(steps, None)
        page = original(stream, after, 3)
        next(steps, None)
        return page

    steps = moving.steps()
    store.read = slowly
    while page := reader.read(read[-1].position if read else 0):
        read += page
    assert read == before
    assert moving.written
    del store.read
    bandit.close()


def test_a_damaged_event_is_not_archived(archived, clock, seed):
    store = MemoryStore(clock)
    bandit = archived.used(archived.opened(store), seed)
    original = store.read_sealed

    def damaged(stream, after, limit):
        return [one._replace(checksum=b"") for one in original(stream, after, limit)]

    store.read_sealed = damaged
    with raises_code("invalid-input"):
        archived.compacted(bandit)
    assert not Archive(store, "page").segments


@pytest.mark.parametrize(
    "change",
    [
        lambda event: {"at": event.at + 1},
        lambda event: {"body": event.body[:-1] + bytes([event.body[-1] ^ 1])},
    ],
    ids=["a time", "a body"],
)
def test_a_changed_event_of_a_file_is_not_archived(
    archived, clock, seed, tmp_path, change_events, change
):
    path = tmp_path / "page.db"
    with closing(SQLiteStore(path, clock=clock)) as store:
        bandit = archived.used(archived.opened(store), seed)
        # An event of an activation has no body to change.
        changed = [one.position for one in store.read(log_stream("page")) if one.body][1]
        assert change_events(path, change, position=changed) == 1
        with raises_code("invalid-input"):
            archived.compacted(bandit)
        assert not Archive(store, "page").segments


def test_a_segment_that_cannot_be_read_back_deletes_nothing(archived, clock, seed, monkeypatch):
    store = MemoryStore(clock)
    bandit = archived.used(archived.opened(store), seed)
    before = log_of(store)
    put = store.put_segment
    monkeypatch.setattr(store, "put_segment", lambda name, one, data: put(name, one, data[:-1]))
    with raises_code("invalid-input"):
        archived.compacted(bandit)
    assert store.read(log_stream("page")) == before


def test_events_wait_for_rewards_that_may_come_before_their_decisions(archived, clock):
    settings = archived.opened(MemoryStore(clock), reward_wait=archived.WAIT).settings
    assert settings.archive_age(1.0) == archived.WAIT + archived.QUARANTINE
    assert settings.archive_age(1e6) == 1e6
    at_once = archived.opened(MemoryStore(clock), reward_wait=0.0).settings
    assert at_once.archive_age(1.0) == archived.QUARANTINE
