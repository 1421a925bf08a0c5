"""Damage to what a store holds is found, whatever byte it is in."""

import os
import sqlite3
from contextlib import closing

import psycopg
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from refusals import raises_code

from submax.cli import main
from submax.live.bandits.open import open_bandit
from submax.live.store.event import Entry
from submax.live.store.postgres_store import PostgresStore
from submax.live.store.sqlite_store import SQLiteStore
from submax.testing import ManualClock

UUID = "01890a5d-ac96-774b-bcce-b302099a8057"


@pytest.fixture
def file(tmp_path):
    """A small store: three decisions, and two rewards of them."""
    path = tmp_path / "page.db"
    with open_bandit(
        path, name="page", actions=["A", "B"], background=False, clock=ManualClock()
    ) as bandit:
        for identifier in (UUID, "d1", "d2"):
            bandit.decide(id=identifier)
        for identifier in (UUID, "d1"):
            bandit.reward(identifier, 1.0)
        bandit.store.put_blob("page/blob", b"data")
    return path


def invoke(*arguments):
    return CliRunner().invoke(main, [str(one) for one in arguments])


def check_that_damage_is_found(path):
    result = invoke("doctor", path)
    assert result.exit_code == 1, result.output
    assert "DAMAGE" in result.output


def exported(path, folder):
    """The decisions and the rewards of a store; None if it cannot be exported."""
    log, rewards = folder / "log.parquet", folder / "rewards.parquet"
    result = invoke("export", path, "--bandit", "page", "--out", log, "--rewards", rewards)
    if result.exit_code != 0:
        return None
    return pq.read_table(log).to_pylist(), pq.read_table(rewards).to_pylist()


def page_of_events(path):
    """Where the page that holds the events begins and ends; they fit into one."""
    with closing(sqlite3.connect(path)) as connection:
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        (page,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'events' AND type = 'table'"
        ).fetchone()
    return (page - 1) * size, page * size


STRIDE = 1 if "SUBMAX_SOAK" in os.environ else 25
"""Every byte takes minutes; here every so many, beginning at one that depends on the seed."""


def flips(path):
    """Every byte of the page of events that is used, with another value."""
    begin, end = page_of_events(path)
    whole = path.read_bytes()
    # The first byte of a leaf of a table is 13, so that all events are in this page.
    assert whole[begin] == 13
    unused = whole[begin:end].find(bytes(32))
    for offset in range(begin, end):
        if offset - begin < unused or whole[offset] or whole[offset - 1]:
            yield offset


@pytest.mark.slow
@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF])
def test_a_flipped_byte_leaves_the_export_as_it_was_or_is_found(file, tmp_path, mask, seed):
    before, whole = exported(file, tmp_path), file.read_bytes()
    copy, missed, found = tmp_path / "flipped.db", [], 0
    offsets = list(flips(file))[(seed + mask) % STRIDE :: STRIDE]
    for offset in offsets:
        flipped = bytearray(whole)
        flipped[offset] ^= mask
        copy.write_bytes(flipped)
        result = invoke("doctor", copy)
        assert result.exception is None or isinstance(result.exception, SystemExit), offset
        if result.exit_code == 1:
            found += 1
        elif exported(copy, tmp_path) != before:
            missed.append(offset)
    assert missed == []
    assert found > len(offsets) / 2


CHANGED_VALUES = {
    "a propensity": (
        {"kind": "decision"},
        lambda event: {"body": event.body.replace(b"\xcb\x3f\xe0", b"\xcb\x3f\xd0")},
    ),
    "a time": ({"kind": "decision"}, lambda event: {"at": event.at + 3600}),
    "an id": ({"key": "d d1"}, lambda event: {"key": "d other"}),
    "what a reward is about": ({"kind": "reward"}, lambda event: {"about_position": 0}),
    "a position": ({"key": "d d2"}, lambda event: {"position": 1000}),
    "the first position": ({"kind": "declared"}, lambda event: {"position": 0}),
}


@pytest.mark.parametrize("change", list(CHANGED_VALUES))
def test_a_changed_value_is_found(file, change, change_events):
    assert invoke("doctor", file).exit_code == 0
    which, changed = CHANGED_VALUES[change]
    assert change_events(file, changed, **which) > 0
    check_that_damage_is_found(file)


def test_a_position_that_does_not_rise_is_refused(file, change_events):
    # Whoever reads to the end would never come to it.
    assert change_events(file, lambda event: {"position": 0}, kind="declared") == 1
    with closing(SQLiteStore(file)) as store, raises_code("invalid-input"):
        store.read("page/settings")


CHANGES = {
    "an event in the middle": "DELETE FROM events WHERE key = CAST('d d1' AS BLOB)",
    "the end": "DELETE FROM events WHERE position > 4",
    "the last event": "DELETE FROM events WHERE key = CAST('r d1 reward' AS BLOB)",
    "the whole log": "DELETE FROM events WHERE stream = "
    "(SELECT number FROM streams WHERE name = 'page/log')",
    "a blob": "UPDATE blobs SET data = x'00' WHERE name = 'page/blob'",
    "the name of a stream": "UPDATE streams SET name = 'page/lag' WHERE name = 'page/log'",
}


@pytest.mark.parametrize("change", list(CHANGES))
def test_a_change_that_sqlite_does_not_notice_is_found(file, change):
    assert invoke("doctor", file).exit_code == 0
    with closing(sqlite3.connect(file)) as connection, connection:
        assert connection.execute(CHANGES[change]).rowcount > 0
    check_that_damage_is_found(file)


def test_a_damaged_store_gives_no_backup(file, tmp_path, change_events):
    copy = tmp_path / "copy.db"
    assert change_events(file, lambda event: {"at": event.at + 1}, key="d d1") == 1
    result = invoke("backup", file, copy)
    assert result.exit_code == 1
    assert "event 3 of 'page/log'" in result.output
    assert sorted(one.name for one in tmp_path.glob("copy*")) == []


def test_a_copy_that_the_disk_damages_is_not_kept(file, tmp_path, monkeypatch):
    """The copy is read again after it was written."""
    from submax.live.store import sqlite_store

    checked = sqlite_store.check_copy

    def damaging(partial, source):
        with closing(sqlite3.connect(partial)) as connection, connection:
            connection.execute("DELETE FROM events WHERE key = CAST('d d1' AS BLOB)")
        checked(partial, source)

    monkeypatch.setattr(sqlite_store, "check_copy", damaging)
    result = invoke("backup", file, tmp_path / "copy.db")
    assert result.exit_code == 1
    assert not (tmp_path / "copy.db").exists()


POSTGRES_CHANGES = [
    "UPDATE blobs SET data = 'x'",
    "UPDATE events SET body = 'x' WHERE position = 3",
    "DELETE FROM events WHERE position = 5",
    "DELETE FROM events WHERE position = 1",
]
"""The events 3 and 4 are those of another stream."""


def test_every_change_of_a_postgres_store_is_found_and_its_backup_is_whole(
    postgres_address, tmp_path
):
    with closing(PostgresStore(postgres_address)) as store:
        entries = [Entry("kind", bytes(range(256)), "ä"), Entry("kind", b"", None, "ä")]
        store.append("s", entries).result()
        store.append("other", entries).result()
        store.put_blob("blob", b"data")
        store.append("s", [Entry("kind", b"1", "🦆", "nobody")]).result()
        assert list(store.damage()) == []
        store.backup(tmp_path / "copy.db")
        with closing(SQLiteStore(tmp_path / "copy.db")) as copy:
            copy.append("s", [Entry("kind", b"2", "new", "ä")]).result()
            assert list(copy.damage()) == []
        for number, change in enumerate(POSTGRES_CHANGES, start=1):
            with psycopg.connect(postgres_address, autocommit=True) as connection:
                assert connection.execute(change).rowcount == 1
            assert len(list(store.damage())) == number
