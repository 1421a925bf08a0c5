"""A log whose positions do not rise is damaged, and reading it ends."""

import pytest
from refusals import raises_code

from submax.live.archive.log_reader import LogReader
from submax.live.store.event import Entry
from submax.live.store.memory_store import MemoryStore


class DamagedStore(MemoryStore):
    """A store that returns the events of a page in the wrong order."""

    def read(self, stream, after=0, limit=10):
        return super().read(stream, 0, limit)[::-1]


@pytest.mark.parametrize("method", ["read", "read_page"])
def test_events_out_of_order_are_refused(method):
    store = DamagedStore()
    store.append("page/log", [Entry("tick", b""), Entry("tick", b"")]).result()
    with raises_code("invalid-input"):
        getattr(LogReader(store, "page"), method)(0)
