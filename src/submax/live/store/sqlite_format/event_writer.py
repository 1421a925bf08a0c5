"""Writes new events to the tables of a SQLite file."""

import sqlite3
from collections.abc import Callable, Sequence

from submax.live.store.event import AppendResult, Entry, Event
from submax.live.store.group_commit import QueuedAppend
from submax.live.store.integrity.sealed_event import SealedEvent
from submax.live.store.sqlite_format.connection import transaction
from submax.live.store.sqlite_format.event_record import AT
from submax.live.store.sqlite_format.event_row import event_of, stored_row
from submax.live.store.sqlite_format.packed_key import packed
from submax.live.store.sqlite_format.statements import ABOUT, FIND, INSERT_NEW, insert_rows
from submax.live.store.sqlite_format.stream_ends import StreamEnds

MAX_EVENTS_PER_STATEMENT = 64
"""The most events in one statement. Each number of events is a statement of its own, and the
connection keeps the last 128 of them prepared."""


class EventWriter:
    """Writes events through the only connection that writes events; one call at a time.

    The ends of the streams are kept in memory between two calls. If somebody else changes streams
    through the connection, ``forget_ends`` must be called.
    """

    def __init__(self, connection: sqlite3.Connection, clock: Callable[[], float]) -> None:
        self._connection, self._clock = connection, clock
        self._ends: StreamEnds | None = None

    def forget_ends(self) -> None:
        """Read the ends of the streams again before the next event is written."""
        self._ends = None

    def write_new(self, appends: Sequence[QueuedAppend]) -> list[list[AppendResult]] | None:
        """Write events by one statement, which is a transaction by itself, if all keys are new.

        Return None if this cannot be done; then nothing was written. A thread needs Python's lock
        again several times in each statement, and while a version is fitted, it waits for it each
        time. So decisions wait less often than in a transaction of several statements.
        """
        ends = self._ends
        entries = [(one.stream, entry) for one in appends for entry in one.entries]
        # Inside a transaction that was left open, the statement would not be committed.
        is_open = self._connection.in_transaction
        if is_open or ends is None or not _may_be_new(entries, ends):
            return None
        events: list[Event] = []
        values: list[int | bytes | None] = []
        written: dict[str, int] = {}
        for position, (stream, entry) in enumerate(entries, ends.next_position):
            event = self._event(ends.number(stream), position, entry)
            previous = written.get(stream, ends.end(stream))
            written[stream] = position
            events.append(event)
            values += stored_row(ends.number(stream), SealedEvent.of(stream, event, previous))
        # If the statement fails, it may have been committed nevertheless.
        self._ends = None
        try:
            self._connection.execute(insert_rows(len(events)), values)
        except sqlite3.IntegrityError:
            # A key exists already, so that nothing was written.
            self._ends = ends
            return None
        for stream, _ in entries:
            ends.advance(stream)
        self._ends = ends
        made = iter(events)
        return [[AppendResult(next(made), new=True) for _ in one.entries] for one in appends]

    def write(self, appends: Sequence[QueuedAppend]) -> list[list[AppendResult]]:
        """Write events one by one in a transaction; keys may exist, and streams may be new."""
        with transaction(self._connection):
            # While the transaction is open, the ends in memory may not be those in the file.
            ends, self._ends = self._ends or StreamEnds(self._connection), None
            results = [
                [self._written(append.stream, entry, ends) for entry in append.entries]
                for append in appends
            ]
        self._ends = ends
        return results

    def _written(self, stream: str, entry: Entry, ends: StreamEnds) -> AppendResult:
        number = ends.number(stream)
        event = self._event(number, ends.next_position, entry)
        row = stored_row(number, SealedEvent.of(stream, event, ends.end(stream)))
        if self._connection.execute(INSERT_NEW, row).rowcount == 1:
            ends.advance(stream)
            return AppendResult(event, new=True)
        earlier = self._connection.execute(FIND, (stream, packed(entry.key))).fetchone()
        return AppendResult(event_of(earlier[0]), new=False)

    def _event(self, number: int, position: int, entry: Entry) -> Event:
        """Return the event of an entry, with what is known about the event that it is about."""
        about = None
        if entry.about is not None:
            about = self._connection.execute(ABOUT, (number, packed(entry.about))).fetchone()
        about_position, about_at = (0, 0.0) if about is None else (about[0], *AT.unpack(about[1]))
        return Event(
            position,
            self._clock(),
            entry.kind,
            entry.key,
            entry.about,
            about_position,
            about_at,
            entry.body,
        )


def _may_be_new(entries: Sequence[tuple[str, Entry]], ends: StreamEnds) -> bool:
    """Whether one statement can write the entries: few, of known streams, none about another."""
    keys = {entry.key for _, entry in entries}
    return 0 < len(entries) <= MAX_EVENTS_PER_STATEMENT and all(
        stream in ends and (entry.about is None or entry.about not in keys)
        for stream, entry in entries
    )
