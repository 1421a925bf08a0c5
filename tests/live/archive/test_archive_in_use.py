"""Bandits, backups, deletions and commands with an archive."""

import re
import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner
from refusals import raises_code

from submax.cli import main
from submax.live.archive.archive import Archive
from submax.live.archive.compacting import compactor
from submax.live.archive.compacting.compactor import removed_rows
from submax.live.archive.examine import archive_damage
from submax.live.archive.log_reader import LogReader
from submax.live.archive.segments.segment_folder import SegmentFolder, archive_folder
from submax.live.bandits.open import open_bandit, open_store
from submax.live.declaring import delete
from submax.live.log.bandits import log_stream
from submax.live.operating.doctor import examined
from submax.live.store.memory_store import MemoryStore


def log_of(store):
    reader, events = LogReader(store, "page"), []
    while page := reader.read(events[-1].position if events else 0):
        events += page
    return events


def kinds(store):
    return {one.kind for one in examined(store, ["page"])}


def damage(store):
    return " | ".join(one.sentence for one in examined(store, ["page"]) if one.kind == "damage")


@pytest.fixture
def path(archived_file, tmp_path):
    """A store in a file with an archive, of this test alone."""
    path = Path(shutil.copy(archived_file, tmp_path))
    shutil.copytree(archive_folder(archived_file), archive_folder(path))
    return path


def segment_files(path):
    return sorted(archive_folder(path).rglob("*.parquet"))


class TestRows:
    def test_rows_that_were_removed_are_computed_from_the_log(
        self, archived, place, options, seed, monkeypatch
    ):
        monkeypatch.setattr(compactor, "KEPT_ROWS", 8)
        bandit = archived.used(archived.opened(place, **options), seed, 120)
        ledger = bandit.ledger()
        bandit.snapshot()
        blobs = [bandit.store.get_blob(f"page/rows/{n}") for n in range(len(ledger.rows.segments))]
        expected = ledger.rows.columns()
        moved = archived.compacted(bandit)
        removed = len(list(removed_rows(ledger, moved)))
        assert removed > 1
        left = [bandit.store.get_blob(f"page/rows/{n}") for n in range(len(blobs))]
        assert left == [None] * removed + blobs[removed:]
        bandit = archived.reopened(bandit, place)
        rows = bandit.ledger().rows
        for number in [0, 1, 0, removed - 1]:
            part = rows.parts()[number].read()
            assert part.hash == rows.segments.hashes[number]
        for found, wanted in zip(rows.columns(), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)
        assert "damage" not in kinds(bandit.store)
        # A blob that was not removed by a compaction is missing because of damage.
        bandit.store.delete_blob(f"page/rows/{removed}")
        with raises_code("invalid-input"):
            rows.columns()
        bandit.close()

    def test_rows_are_removed_once(self, archived, clock, seed, monkeypatch):
        monkeypatch.setattr(compactor, "KEPT_ROWS", 0)
        bandit = archived.used(archived.opened(MemoryStore(clock)), seed, 120)
        moved = archived.compacted(bandit)
        assert list(removed_rows(bandit.ledger(), moved))
        assert not list(removed_rows(bandit.ledger(), moved))


class TestCompactor:
    def test_a_bandit_archives_by_itself(self, archived, place, options, seed, monkeypatch):
        for name, value in {"SEGMENT_EVENTS": 20, "MIN_PAUSE_SECONDS": 0.0, "KEPT_ROWS": 8}.items():
            monkeypatch.setattr(compactor, name, value)
        bandit = archived.used(archived.opened(place, **options, archive_after=120.0), seed)
        before = log_of(bandit.store)
        for _ in range(200):
            bandit._learner.step()
        left = bandit.store.read(log_stream("page"))
        young = [one for one in before if one.at > archived.clock.now - 120.0]
        # Only full segments are written.
        assert len(young) <= len(left) <= len(young) + 20 + 8 < len(before)
        assert log_of(bandit.store)[: len(before)] == before
        assert "damage" not in kinds(bandit.store)
        assert bandit.ledger().collected.closed.base <= left[0].position
        bandit.close()

    def test_nothing_is_archived_without_archive_after(self, archived, clock, seed, monkeypatch):
        monkeypatch.setattr(compactor, "SEGMENT_EVENTS", 20)
        bandit = archived.used(archived.opened(MemoryStore(clock)), seed)
        for _ in range(50):
            bandit._learner.step()
        assert bandit.store.find("page/settings", "archived 1") is None

    def test_damage_does_not_stop_a_bandit(self, archived, clock, seed, monkeypatch, caplog):
        monkeypatch.setattr(compactor, "SEGMENT_EVENTS", 20)
        bandit = archived.used(archived.opened(MemoryStore(clock), archive_after=120.0), seed)
        monkeypatch.setattr(bandit.store, "get_segment", lambda name, segment: None)
        for _ in range(20):
            bandit._learner.step()
        assert "nothing was archived: the new segment of 'page' is missing" in caplog.text
        assert bandit.store.find("page/settings", "archived 1") is None


class TestIds:
    @pytest.mark.filterwarnings("ignore:.*came later than:submax.LateRewardWarning")
    def test_feedback_for_an_archived_decision_is_not_learned(self, archived, place, options):
        bandit = archived.opened(place, **options)
        context = {"age": 1.0, "country": "de"}
        bandit.decide(context, id="old", activate=False)
        bandit.reward("old", 1.0)
        archived.clock.now += 1000.0
        bandit.decide(context)
        bandit.ledger()
        assert archived.compacted(bandit, age=0.0).written
        rows = len(bandit.ledger().rows)
        assert bandit.reward("old", 1.0, key="again").status == "late"
        with raises_code("not-found"):
            bandit.activate("old")
        archived.clock.now += archived.QUARANTINE
        bandit.decide(context)
        assert bandit.ledger().counts["orphans"] == 1
        learned = bandit.ledger().rows.columns().reward.tolist()
        assert learned[: rows + 1].count(1.0) == 0
        bandit.close()

    def test_an_id_that_is_used_again_is_a_new_decision(self, archived, place, options):
        bandit = archived.opened(place, **options)
        context = {"age": 1.0, "country": "de"}
        bandit.decide(context, id="visit", activate=False)
        bandit.reward("visit", 1.0)
        archived.clock.now += 1000.0
        bandit.decide(context)
        bandit.ledger()
        archived.compacted(bandit, age=0.0)
        assert not bandit.decide(context, id="visit", activate=False).repeated
        # Neither the reward nor the activation of the first decision is one of the second.
        assert bandit.ledger().counts["learned"] == 0 or options["reward_wait"]
        before = bandit.ledger().counts["learned"]
        bandit.reward("visit", 0.0)
        bandit.activate("visit")
        archived.clock.now += 1000.0
        bandit.decide(context)
        assert bandit.ledger().counts["learned"] > before
        assert 1.0 not in bandit.ledger().rows.columns().reward
        bandit.close()


class TestDoctor:
    def test_it_finds_every_changed_byte(self, path, seed):
        for file in segment_files(path):
            data = bytearray(file.read_bytes())
            data[seed % len(data)] ^= 1
            file.write_bytes(data)
        result = CliRunner().invoke(main, ["doctor", str(path)])
        assert result.exit_code == 1
        assert "DAMAGE page: segment 1 of the archive of 'page' is damaged" in result.output
        assert "segment 2 of the archive of 'page' is damaged" in result.output

    def test_it_finds_a_missing_folder(self, path):
        shutil.rmtree(archive_folder(path))
        store = open_store(path, read_only=True)
        assert "segment 1 of the archive of 'page' is missing, and its events" in damage(store)
        with raises_code("invalid-input"):
            LogReader(store, "page").read(0)

    def test_it_finds_events_that_are_missing_behind_the_archive(self, path):
        store = open_store(path)
        store.delete_events(log_stream("page"), store.read(log_stream("page"))[0].position)
        assert "events of 'page' are missing between its archive and the store" in damage(store)
        store.close()

    @pytest.mark.parametrize("change", [{"events": 19}, {"first": 0}, {"decisions": 1}])
    def test_it_compares_segments_with_their_records(self, path, change):
        store = open_store(path)
        archive = Archive(store, "page")
        archive.follow()
        archive.segments[1] = msgspec.structs.replace(archive.segments[1], **change)
        found = list(archive_damage(store, "page", archive))
        assert any("segment 2" in sentence for sentence in found)
        store.close()

    def test_it_counts_what_is_archived(self, path):
        result = CliRunner().invoke(main, ["doctor", str(path)])
        assert result.exit_code == 0, result.output
        assert re.search(r"ok +page: \d+ archived events in \d+ whole segments", result.output)


class TestBackup:
    def test_it_has_the_segments(self, path, tmp_path):
        store = open_store(path, read_only=True)
        copy = tmp_path / "copy" / "copy.db"
        copy.parent.mkdir()
        store.backup(copy)
        copied = open_store(copy, read_only=True)
        assert log_of(copied) == log_of(store)
        assert "damage" not in kinds(copied)
        assert len(segment_files(copy)) == len(segment_files(path)) > 1

    def test_a_damaged_segment_makes_no_copy(self, path, tmp_path):
        segment_files(path)[-1].write_bytes(b"")
        copy = tmp_path / "copy.db"
        with raises_code("invalid-input"):
            open_store(path, read_only=True).backup(copy)
        assert not copy.exists()
        assert not archive_folder(copy).exists()

    def test_a_folder_that_exists_is_not_replaced(self, path, tmp_path):
        copy = tmp_path / "copy.db"
        archive_folder(copy).mkdir()
        with raises_code("invalid-input"):
            open_store(path, read_only=True).backup(copy)

    def test_blobs_of_other_stores_become_files(self, archived, clock, seed, tmp_path):
        bandit = archived.used(archived.opened(MemoryStore(clock)), seed)
        archived.compacted(bandit)
        bandit.store.backup(tmp_path / "copy.db")
        copied = open_store(tmp_path / "copy.db", read_only=True)
        assert log_of(copied) == log_of(bandit.store)
        segments = Archive(copied, "page")
        segments.follow()
        assert len(segment_files(tmp_path / "copy.db")) == len(segments.segments) > 1
        assert copied.get_blob(f"page/archive/{segments.segments[0].file}.parquet") is None


def test_deleting_a_bandit_deletes_its_segments(path, monkeypatch):
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


def test_a_segment_that_cannot_be_written_says_what_to_do(path):
    folder = SegmentFolder(path)
    with pytest.raises(Exception, match="see that the disk has space"):
        folder.put("page", "1", b"")


class TestCommand:
    def run(self, *words):
        return CliRunner().invoke(main, ["compact", *map(str, words)])

    def test_it_moves_old_events_and_makes_the_file_smaller(self, archived, tmp_path, seed):
        path = tmp_path / "page.db"
        with archived.used(archived.opened(path, archive_after=120.0), seed, 150) as bandit:
            before = log_of(bandit.store)
        size = path.stat().st_size
        dry = self.run(path, "--dry-run")
        found = re.search(
            r"page: ([\d,]+) events would be moved to about ([\d,]+) bytes", dry.output
        )
        assert found, dry.output
        assert not archive_folder(path).exists()
        result = self.run(path, "page")
        assert result.exit_code == 0, result.output
        assert f"page: {found[1]} events were moved to" in result.output
        assert "The store has" in result.output
        assert path.stat().st_size < size
        store = open_store(path, read_only=True)
        assert log_of(store) == before
        assert "damage" not in kinds(store)
        assert "page: 0 events were moved" in self.run(path, "--no-vacuum").output

    def test_the_age_can_be_given(self, path):
        assert "archive_after is None" in self.run(path).output
        result = self.run(path, "--older-than", "20000d")
        assert "page: 0 events were moved" in result.output
        short = self.run(path, "--older-than", "5s")
        assert "events stay for 90 seconds, because rewards may come" in short.output

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (["--older-than", "soon"], "a duration is a number and s, m, h or d"),
            (["nobody"], "unknown bandit 'nobody'"),
        ],
    )
    def test_mistakes_are_explained(self, path, words, message):
        result = self.run(path, *words)
        assert result.exit_code != 0
        assert message in result.output + str(result.exception)

    def test_a_store_that_does_not_exist_is_not_made(self, tmp_path):
        result = self.run(tmp_path / "none.db")
        assert "there is no store" in result.output + str(result.exception)
        assert not (tmp_path / "none.db").exists()
