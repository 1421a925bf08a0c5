"""Delete a bandit with everything that the store has of it."""

import time

from submax.bandit.names import check_bandit
from submax.core.errors import NotFoundError
from submax.live.log.bandits import (
    alarm_stream,
    blob_prefix,
    log_stream,
    settings_stream,
)
from submax.live.log.records import DECLARED, DELETED
from submax.live.store.event import Entry
from submax.live.store.store import Store

NOTICE_SECONDS = 1.0
"""How long the data stay after the deletion was written: all processes that have the bandit open
read new settings five times a second, and write nothing more once they know."""
EVERYTHING = 2**62
"""A position behind all events."""


def delete_bandit(store: Store, name: str) -> None:
    """Delete a bandit: its log, its versions and its settings; this cannot be undone.

    Only the event that says so stays in its stream of settings. The name can be declared again. If
    the process ends on the way, the bandit answers no calls, and another call deletes the rest.
    """
    check_bandit(name)
    settings = settings_stream(name)
    if store.find(settings, DECLARED) is None:
        raise NotFoundError(f"there is no bandit {name!r} to delete: give the name of one")
    (written,) = store.append(settings, [Entry(DELETED, b"")]).result()
    time.sleep(NOTICE_SECONDS)
    for stream in (log_stream(name), alarm_stream(name)):
        store.delete_events(stream, EVERYTHING)
    store.delete_segments(name)
    store.delete_blobs(blob_prefix(name))
    # The declaration goes last: until then the bandit is there, and can be deleted again.
    store.delete_events(settings, written.event.position - 1)
