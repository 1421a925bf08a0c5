"""Bandits, backups, deletions and commands with an archive."""

import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner
from refusals import raises_code
from waiting import wait_until

from submax.bandit.names import new_identifier
from submax.cli import main
from submax.live.archive.compacting import compactor
from submax.live.archive.segments.segment_folder import archive_folder
from submax.live.bandits.open import open_bandit, open_store
from submax.live.declaring import delete
from submax.live.log.bandits import log_stream
from submax.live.store.memory_store import MemoryStore

CONTEXT = {"age": 1.0, "country": "de"}


@pytest.fixture
def path(archived_file, tmp_path):
    path = Path(shutil.copy(archived_file, tmp_path))
    shutil.copytree(archive_folder(archived_file), archive_folder(path))
    return path


def segment_files(path):
    return sorted(archive_folder(path).rglob("*.parquet"))


def run(*words):
    return CliRunner().invoke(main, [*map(str, words)])


class TestBackground:
    @pytest.fixture(autouse=True)
    def _quick(self, monkeypatch):
        monkeypatch.setattr(compactor, "SEGMENT_EVENTS", 20)
        monkeypatch.setattr(compactor, "MIN_PAUSE_SECONDS", 0.0)
        monkeypatch.setattr("submax.live.bandits.bandit.POLL_SECONDS", 0.005)

    def test_a_bandit_archives_by_itself(self, archived, place, options, seed, tmp_path):
        bandit = archived.used(archived.opened(place, **options, archive_after=1.0), seed)
        files = archived.exported(bandit.store, tmp_path)
        log = bandit.store.read(log_stream("page"))
        bandit.close()
        # Events wait for rewards that may come before their decisions.
        age = options["reward_wait"] + archived.QUARANTINE
        young = sum(one.at > archived.clock.now - age for one in log)
        with open_bandit(place, name="page", clock=archived.clock) as bandit:
            # Only full segments are written.
            wait_until(lambda: archived.in_store(bandit.store) <= young + 20 + 8 < len(log))
            assert archived.in_store(bandit.store) >= young
            assert archived.exported(bandit.store, tmp_path) == files
            assert archived.damage(bandit.store) == []

    def test_damage_does_not_stop_a_bandit(self, archived, clock, seed, monkeypatch, caplog):
        store = MemoryStore(clock)
        archived.used(archived.opened(store, archive_after=120.0), seed).close()
        events = archived.in_store(store)
        monkeypatch.setattr(store, "get_segment", lambda name, segment: None)
        with open_bandit(store, name="page", clock=clock) as bandit:
            wait_until(lambda: "is missing" in caplog.text)
            bandit.decide(CONTEXT)
            assert not any(bandit.failures.values())
        assert archived.in_store(store) > events


class TestIds:
    @pytest.mark.filterwarnings("ignore:.*came later than:submax.LateRewardWarning")
    def test_feedback_for_an_archived_decision_is_late_and_not_learned(
        self, archived, place, options
    ):
        bandit = archived.opened(place, **options)
        old = ["old", *(bandit.decide(CONTEXT, activate=False).id for _ in range(30))]
        bandit.decide(CONTEXT, id="old", activate=False)
        bandit.reward("old", 1.0)
        archived.clock.now += 1000.0
        bandit.decide(CONTEXT)
        bandit.ledger()
        assert archived.compacted(bandit, age=0.0) > 20
        for key in ("again", "again", "later"):
            assert {bandit.reward(one, 1.0, key=key).status for one in old} == {"late"}
            with raises_code("not-found"):
                bandit.activate("old")
            bandit = archived.reopened(bandit, place)
        for identifier in ("visit-unknown", new_identifier()):
            assert bandit.reward(identifier, 0.0).status == "quarantined"
        archived.clock.now += archived.QUARANTINE
        bandit.decide(CONTEXT)
        assert 1.0 not in bandit.ledger().rows.columns().reward
        bandit.close()

    def test_an_id_that_is_used_again_is_a_new_decision(self, archived, place, options):
        bandit = archived.opened(place, **options)
        bandit.decide(CONTEXT, id="visit", activate=False)
        bandit.reward("visit", 1.0)
        archived.clock.now += 1000.0
        bandit.decide(CONTEXT)
        bandit.ledger()
        archived.compacted(bandit, age=0.0)
        assert not bandit.decide(CONTEXT, id="visit", activate=False).repeated
        # Neither the reward nor the activation of the first decision is one of the second.
        assert bandit.ledger().counts["learned"] == 0 or options["reward_wait"]
        before = bandit.ledger().counts["learned"]
        bandit.reward("visit", 0.0)
        bandit.activate("visit")
        archived.clock.now += 1000.0
        bandit.decide(CONTEXT)
        assert bandit.ledger().counts["learned"] > before
        assert 1.0 not in bandit.ledger().rows.columns().reward
        bandit.close()


def test_the_doctor_finds_every_changed_byte_and_a_missing_folder(path, seed, tmp_path):
    result = run("doctor", path)
    assert result.exit_code == 0, result.output
    files = segment_files(path)
    for file in files:
        data = bytearray(file.read_bytes())
        data[seed % len(data)] ^= 1
        file.write_bytes(data)
    result = run("doctor", path)
    assert result.exit_code == 1
    assert result.output.count("DAMAGE page:") >= len(files) > 1
    shutil.rmtree(archive_folder(path))
    assert run("doctor", path).exit_code == 1
    assert run("export", path, "--out", tmp_path / "out.parquet").exit_code != 0


def test_the_doctor_finds_events_that_are_missing_behind_the_archive(path):
    store = open_store(path)
    store.delete_events(log_stream("page"), store.read(log_stream("page"))[0].position)
    store.close()
    assert run("doctor", path).exit_code == 1


class TestBackup:
    @pytest.mark.parametrize("in_memory", [False, True])
    def test_it_has_the_archive(self, archived, path, clock, seed, tmp_path, in_memory):
        if in_memory:
            bandit = archived.used(archived.opened(MemoryStore(clock)), seed)
            archived.compacted(bandit)
        store = bandit.store if in_memory else open_store(path, read_only=True)
        store.backup(tmp_path / "copy.db")
        copied = open_store(tmp_path / "copy.db", read_only=True)
        assert archived.exported(copied, tmp_path) == archived.exported(store, tmp_path)
        assert archived.damage(copied) == []

    def test_there_is_none_of_a_damaged_archive_or_in_a_folder_that_exists(self, path, tmp_path):
        copy, taken = tmp_path / "copy.db", tmp_path / "taken.db"
        archive_folder(taken).mkdir()
        with raises_code("invalid-input"):
            open_store(path, read_only=True).backup(taken)
        segment_files(path)[-1].write_bytes(b"")
        with raises_code("invalid-input"):
            open_store(path, read_only=True).backup(copy)
        assert not copy.exists()
        assert not archive_folder(copy).exists()


def test_deleting_a_bandit_deletes_its_archive(path, monkeypatch):
    monkeypatch.setattr(delete, "NOTICE_SECONDS", 0.0)
    other = archive_folder(path) / "other" / "1.parquet"
    other.parent.mkdir()
    other.write_bytes(b"1")
    store = open_store(path)
    delete.delete_bandit(store, "page")
    assert segment_files(path) == [other]
    assert not list(store.damage())
    store.close()
    with open_bandit(path, name="page", actions=["A", "B"], background=False) as again:
        again.decide()
        assert again.ledger().counts["decisions"] == 1


def test_an_archive_that_cannot_be_written_loses_nothing(archived, seed, tmp_path):
    path = tmp_path / "page.db"
    archive_folder(path).write_text("a file, where the archive should be")
    with archived.used(archived.opened(path), seed) as bandit:
        events = archived.in_store(bandit.store)
        with raises_code("store-unavailable"):
            archived.compacted(bandit)
        assert archived.in_store(bandit.store) == events


def moved(result):
    """How many events a command says that it moved, or would move."""
    assert result.exit_code == 0, result.output
    return int(re.search(r"page: ([\d,]+) events", result.output)[1].replace(",", ""))


class TestCommand:
    def test_it_moves_old_events_and_makes_the_file_smaller(self, archived, tmp_path, seed):
        path = tmp_path / "page.db"
        with archived.used(archived.opened(path, archive_after=120.0), seed, 60) as bandit:
            files = archived.exported(bandit.store, tmp_path)
        size = path.stat().st_size
        would_move = moved(run("compact", path, "--dry-run"))
        assert not archive_folder(path).exists()
        assert moved(run("compact", path, "page")) == would_move > 50
        assert path.stat().st_size < size
        store = open_store(path, read_only=True)
        assert archived.exported(store, tmp_path) == files
        assert archived.damage(store) == []
        assert moved(run("compact", path, "--no-vacuum")) == 0

    def test_events_stay_without_an_age_and_if_they_are_younger(self, path):
        before = path.read_bytes()
        assert run("compact", path, "--no-vacuum").exit_code == 0
        assert path.read_bytes() == before
        assert moved(run("compact", path, "--older-than", "20000d")) == 0

    def test_mistakes_are_refused(self, path, tmp_path):
        for words in ([path, "--older-than", "soon"], [path, "nobody"], [tmp_path / "none.db"]):
            assert run("compact", *words).exit_code != 0
        assert not (tmp_path / "none.db").exists()
