"""Rules of a store about its blobs and segments."""

from submax.live.store.store import Store
from submax.testing.rules.require import require
from submax.testing.rules.store_events import EVERY_BYTE


def check_blobs(store: Store) -> None:
    """Check that a blob is what was last put under its name, until it is deleted."""
    require(store.get_blob("blob") is None, store, "a new name has no blob")
    for data in (EVERY_BYTE, b"", b"\0", EVERY_BYTE * 4096):
        store.put_blob("blob", data)
        store.put_blob("other 🦆", data[::-1])
        require(store.get_blob("blob") == data, store, "a blob is what was last put under its name")
        require(
            store.get_blob("other 🦆") == data[::-1],
            store,
            "blobs with different names are different",
        )
    for _ in range(2):
        store.delete_blob("blob")
        require(store.get_blob("blob") is None, store, "a deleted blob is gone")
    require(store.get_blob("other 🦆") is not None, store, "blobs with other names are not deleted")


def check_segments(store: Store) -> None:
    """Check that segments are stored by bandit and name."""
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
