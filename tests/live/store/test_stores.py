from functools import partial

import msgspec
import pytest

from submax.live.store.memory_store import MemoryStore
from submax.live.store.postgres_store import PostgresStore
from submax.live.store.sqlite_store import SQLiteStore
from submax.testing import check_store


def test_the_store_in_memory_keeps_its_contract():
    store = MemoryStore()
    check_store(lambda: store, forgets=True)


def test_the_store_in_a_file_keeps_its_contract(tmp_path):
    check_store(partial(SQLiteStore, tmp_path / "store.db"))


def test_the_store_in_postgres_keeps_its_contract(postgres_address):
    check_store(partial(PostgresStore, postgres_address))


class WritesKeysAgain(MemoryStore):
    def _write(self, stream, entry):
        self._keys.pop((stream, entry.key), None)
        return super()._write(stream, entry)


class SharesKeysAmongStreams(MemoryStore):
    def _write(self, stream, entry):
        known = [event for (_, key), event in self._keys.items() if key == entry.key]
        return msgspec.structs.replace(super()._write(stream, entry), new=not known)


class ForgetsWhatItIsAbout(MemoryStore):
    def _write(self, stream, entry):
        return super()._write(stream, msgspec.structs.replace(entry, about=None))


class SkipsAtPages(MemoryStore):
    def read(self, stream, after=0, limit=10_000):
        return super().read(stream, after + 1 if limit == 5 else after, limit)


class ShowsHalves(MemoryStore):
    def read(self, stream, after=0, limit=10_000):
        return super().read(stream, after, limit - 1 if stream == "polling" else limit)


class DoesNotSort(MemoryStore):
    def streams(self):
        return list(self._events)


class DoesNotDrop(MemoryStore):
    def delete_blob(self, name):
        pass


class FoldsCase(MemoryStore):
    def append(self, stream, entries):
        folded = [
            msgspec.structs.replace(each, key=each.key and each.key.lower()) for each in entries
        ]
        return super().append(stream, folded)


class NeverLeads(MemoryStore):
    def try_lead(self, name):
        return False


class LosesWhatIsOpen(MemoryStore):
    def close(self):
        self._events.pop("reopening", None)


class AnswersBeforeItWrites(MemoryStore):
    def append(self, stream, entries):
        done = super().append(stream, entries)
        if stream == "giving up":
            self._events[stream].pop()
        return done


class SealsWithoutLinks(MemoryStore):
    def read_sealed(self, stream, after, limit):
        return [one.as_first() for one in super().read_sealed(stream, after, limit)]


class SealsOtherColumns(MemoryStore):
    def read_sealed_columns(self, stream, after, limit):
        return super().read_sealed_columns(stream, 0, limit)


class DeletesSegmentsOfOthers(MemoryStore):
    def delete_segments(self, name):
        self.delete_blobs(name)


@pytest.mark.parametrize(
    ("broken", "rule"),
    [
        (WritesKeysAgain, "gives the event that stands"),
        (SharesKeysAmongStreams, "keys are those of one stream"),
        (ForgetsWhatItIsAbout, "knows where and when"),
        (SkipsAtPages, "pages of 5 give every event once"),
        (ShowsHalves, "become visible together"),
        (DoesNotSort, "streams are sorted"),
        (DoesNotDrop, "a deleted blob is gone"),
        (FoldsCase, "different texts are different keys"),
        (NeverLeads, "the only store that is open leads"),
        (LosesWhatIsOpen, "closing writes all that was begun"),
        (AnswersBeforeItWrites, "does not stop the store"),
        (SealsWithoutLinks, "a sealed event knows the one before it"),
        (SealsOtherColumns, "columns of sealed events hold the same events"),
        (DeletesSegmentsOfOthers, "segments are deleted by the name of the bandit"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_broken_store_is_found_out(broken, rule):
    store = broken()
    with pytest.raises(AssertionError, match=f"{broken.__name__} breaks a rule: .*{rule}"):
        check_store(lambda: store, forgets=True)


def test_a_store_that_stays_open_is_found_out():
    store = MemoryStore()
    with pytest.raises(AssertionError, match="an append after closing is refused"):
        check_store(lambda: store)
