"""Deleting a bandit leaves a store in which no damage is found, and nothing of the bandit."""

import sqlite3
from contextlib import closing
from unittest import mock

import msgspec
import psycopg
import pytest
from click.testing import CliRunner
from refusals import raises_code

from submax.cli import main
from submax.live.bandits.open import open_bandit
from submax.live.declaring import delete
from submax.live.declaring.delete import delete_bandit
from submax.live.log.bandits import bandit_names
from submax.live.log.rows import training_rows
from submax.live.operating.audit_log import AuditLog
from submax.live.operating.doctor import examined
from submax.live.store import postgres_store, sqlite_store
from submax.live.store.event import Entry
from submax.live.store.postgres_store import PostgresStore
from submax.live.store.sqlite_store import SQLiteStore

ROWS, SEGMENT = 20, 8


@pytest.fixture(autouse=True)
def without_notice(monkeypatch):
    """No other process has the bandit open here, so that none must notice the deletion."""
    monkeypatch.setattr(delete, "NOTICE_SECONDS", 0.0)


@pytest.fixture(
    params=["SQLite", pytest.param("PostgreSQL", marks=pytest.mark.needs("postgresql"))]
)
def place(request, tmp_path):
    """The path or address of a new store."""
    if request.param == "SQLite":
        return tmp_path / "page.db"
    return request.getfixturevalue("postgres_address")


def opened(place, **others):
    known = isinstance(place, str) and place.startswith("postgresql://")
    return PostgresStore(place, **others) if known else SQLiteStore(place, **others)


def blobs_of(place):
    """The names of all blobs in a store."""
    statement = "SELECT name FROM blobs"
    if isinstance(place, str):
        with psycopg.connect(place) as connection:
            return {name for (name,) in connection.execute(statement).fetchall()}
    with closing(sqlite3.connect(place)) as connection:
        return {name for (name,) in connection.execute(statement).fetchall()}


def kinds_of(store, name):
    """The kinds of all events that are left of a bandit."""
    streams = [stream for stream in store.streams() if stream.startswith(f"{name}/")]
    return [event.kind for stream in streams for event in store.read(stream)]


def learned(store, name):
    """A bandit that has events, segments of rows, a learning state, a model and a snapshot."""
    bandit = open_bandit(store, name=name, actions=["A", "B"], reward_wait=0, background=False)
    with mock.patch.object(training_rows, "SEGMENT", SEGMENT):
        for number in range(ROWS):
            bandit.decide(id=f"d{number}")
            bandit.reward(f"d{number}", 1.0)
        bandit.refit()
        bandit.snapshot()
    return bandit


def damage(store):
    found = examined(store, bandit_names(store))
    return [finding.sentence for finding in found if finding.kind == "damage"]


def test_nothing_of_a_deleted_bandit_is_left_and_the_store_is_whole(place, tmp_path):
    with closing(opened(place)) as store:
        for name in ("page", "other"):
            learned(store, name)
        before = blobs_of(place)
        assert {"page/rows/0", "page/rows/1", "page/learning", "page/snapshot"} <= before
        with mock.patch.object(training_rows, "SEGMENT", SEGMENT):
            delete_bandit(store, "page")
            assert damage(store) == []
        assert blobs_of(place) == {name for name in before if not name.startswith("page/")}
        assert kinds_of(store, "page") == ["deleted"]
        assert len(kinds_of(store, "other")) > 2 * ROWS
        store.backup(tmp_path / "copy.db")
    with closing(SQLiteStore(tmp_path / "copy.db", read_only=True)) as copy:
        assert bandit_names(copy) == ["other"]


def test_a_name_that_is_declared_again_continues_the_chain(place):
    with closing(opened(place)) as store:
        for _ in range(2):
            learned(store, "page")
            delete_bandit(store, "page")
        learned(store, "page")
        with mock.patch.object(training_rows, "SEGMENT", SEGMENT):
            assert damage(store) == []
        # The deletion before this one was removed with the second bandit.
        assert kinds_of(store, "page").count("deleted") == 1


def test_the_store_is_whole_after_every_part_of_a_deletion(place, monkeypatch):
    """Events are deleted in several transactions, and the process may end between any two."""
    for module in (sqlite_store, postgres_store):
        monkeypatch.setattr(module, "DELETED_AT_ONCE", 3)
    found = []
    with closing(opened(place)) as store:
        written = store.append("s", [Entry("kind", b"%d" % n) for n in range(10)]).result()
        transaction = store._transaction

        def watched():
            found.append(list(store.damage()))
            return transaction()

        monkeypatch.setattr(store, "_transaction", watched)
        store.delete_events("s", written[7].event.position)
        found.append(list(store.damage()))
        assert [event.body for event in store.read("s")] == [b"8", b"9"]
    assert found == [[]] * 4


def test_damage_to_the_event_that_is_left_is_not_hidden(place, change_events):
    with closing(opened(place)) as store:
        written = store.append("s", [Entry("kind", b"%d" % n) for n in range(3)]).result()
        if isinstance(place, str):
            with psycopg.connect(place, autocommit=True) as connection:
                connection.execute("UPDATE events SET body = '9' WHERE position = 3")
        else:
            assert change_events(place, lambda event: {"body": b"9"}, position=3) == 1
        store.delete_events("s", written[1].event.position)
        (sentence,) = store.damage()
    assert "event 3 of 's'" in sentence


def test_a_store_that_is_only_read_deletes_and_writes_nothing(place):
    with closing(opened(place)) as store:
        store.append("s", [Entry("kind", b"")]).result()
        store.put_blob("blob", b"data")
    with closing(opened(place, read_only=True)) as reader:
        for write in (
            lambda: reader.append("s", [Entry("kind", b"")]),
            lambda: reader.put_blob("blob", b"new"),
            lambda: reader.delete_blob("blob"),
            lambda: reader.delete_blobs("blob"),
            lambda: reader.delete_events("s", 1),
            reader.check_writable,
        ):
            with raises_code("store-unavailable"):
                write()
        assert reader.get_blob("blob") == b"data"
        assert len(reader.read("s")) == 1


def test_a_deletion_that_was_interrupted_is_advice(tmp_path, monkeypatch):
    class EndedError(Exception):
        """Stands for the end of the process."""

    def ended(seconds):
        raise EndedError

    with closing(SQLiteStore(tmp_path / "page.db")) as store:
        learned(store, "page")
        monkeypatch.setattr(delete.time, "sleep", ended)
        with pytest.raises(EndedError):
            delete_bandit(store, "page")
    result = CliRunner().invoke(main, ["doctor", str(tmp_path / "page.db")])
    assert result.exit_code == 0
    assert "ADVICE page:" in result.output


@pytest.mark.parametrize("change", ["other rows", "missing"])
def test_doctor_reads_the_stored_rows(tmp_path, change):
    """A segment that has a checksum, but not the rows of its place, is found as well."""
    with closing(SQLiteStore(tmp_path / "page.db")) as store:
        learned(store, "page")
        if change == "missing":
            store.delete_blob("page/rows/1")
        else:
            store.put_blob("page/rows/1", store.get_blob("page/rows/0"))
        with mock.patch.object(training_rows, "SEGMENT", SEGMENT):
            (sentence,) = damage(store)
    assert sentence.startswith("page: segment 1")


def test_deletions_by_python_and_by_the_command_are_audited(tmp_path):
    path = tmp_path / "page.db"
    for name in ("one", "two"):
        open_bandit(path, name=name, actions=["A"], background=False).close()
    open_bandit(path, name="one", background=False).delete()
    CliRunner().invoke(main, ["delete", str(path), "two", "--yes"])
    with closing(SQLiteStore(path, read_only=True)) as store:
        found = [msgspec.structs.astuple(entry) for _, entry in AuditLog(store).newest(10)]
        assert damage(store) == []
    assert found == [("delete", "two", "", "command line", ""), ("delete", "one", "", "Python", "")]
