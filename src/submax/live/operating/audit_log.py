"""The record of who changed what."""

from collections import deque

import msgspec

from submax.core.decoding import known_type
from submax.live.store.event import Entry
from submax.live.store.store import Store

STREAM = "audit"
"""The stream of a store that holds the record."""
CHANGE = "change"
"""The kind of events in this stream."""
MAX_DETAIL_LENGTH = 300
"""Characters of a request that are recorded: a declaration may be long."""
COMMAND_LINE, PYTHON, WITHOUT_KEY = "command line", "Python", "without a key"
"""Who changed something, if it was no key."""


class AuditEntry(msgspec.Struct, frozen=True):
    """A change: ``operation`` was done on ``subject``, a bandit or a key.

    ``key`` is the id of the key that did it and ``name`` the key's name. Without a key ``key`` is
    empty, and ``name`` says how the change was made. ``detail`` is the begin of the request.
    """

    operation: str
    subject: str
    key: str
    name: str
    detail: str = ""


class AuditLog:
    """Writes changes to a store, and reads them again."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def write(self, entry: AuditEntry) -> None:
        """Record a change; durable on return."""
        cut = msgspec.structs.replace(entry, detail=entry.detail[:MAX_DETAIL_LENGTH])
        self._store.append(STREAM, [Entry(CHANGE, msgspec.msgpack.encode(cut))]).result()

    def newest(self, count: int) -> list[tuple[float, AuditEntry]]:
        """The last changes with their times, newest first."""
        found: deque[tuple[float, AuditEntry]] = deque(maxlen=count)
        after = 0
        while page := self._store.read(STREAM, after):
            for event in page:
                found.append(
                    (event.at, msgspec.msgpack.decode(event.body, type=known_type(AuditEntry)))
                )
            after = page[-1].position
        return list(found)[::-1]
