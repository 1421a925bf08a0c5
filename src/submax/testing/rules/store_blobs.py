"""Rules of a store about its blobs and segments."""

from submax.live.store.store import Store
from submax.testing.rules.require import require
from submax.testing.rules.store_events import EVERY_BYTE


def check_pieces(store: Store) -> None:
    """A blob is what was last written under its name."""
    require(store.get_blob("piece") is None, store, "nothing is kept under a new name")
    for data in (EVERY_BYTE, b"", b"\0", EVERY_BYTE * 4096):
        store.put_blob("piece", data)
        store.put_blob("other 🦆", data[::-1])
        require(store.get_blob("piece") == data, store, "the last data put under a name are kept")
        require(store.get_blob("other 🦆") == data[::-1], store, "data are kept by their names")
    for _ in range(2):
        store.delete_blob("piece")
        require(store.get_blob("piece") is None, store, "data that were dropped are gone")
    require(store.get_blob("other 🦆") is not None, store, "data of other names are not dropped")


def check_segments(store: Store) -> None:
    """Segments are kept by bandit and name."""
    require(store.get_segment("page", "1") is None, store, "a segment is unknown at first")
    store.put_segment("page", "1", EVERY_BYTE)
    store.put_segment("page", "2", b"2")
    store.put_segment("page-2", "1", b"other")
    store.put_segment("page", "1", EVERY_BYTE)
    require(store.get_segment("page", "1") == EVERY_BYTE, store, "a segment is kept")
    store.shrink()
    require(not list(store.damage()), store, "a store that was shrunk is whole")
    store.delete_segments("page")
    store.delete_segments("never there")
    left = [store.get_segment(*one) for one in (("page", "1"), ("page", "2"), ("page-2", "1"))]
    require(left == [None, None, b"other"], store, "segments are deleted by the name of the bandit")
    store.delete_segments("page-2")
