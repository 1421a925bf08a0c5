"""Reads the whole log of a bandit: the archive, and then the store."""

from submax.live.archive.archive import Archive
from submax.live.background import BACKGROUND
from submax.live.log.bandits import log_stream
from submax.live.log.pages.log_page import LogPage
from submax.live.store.event import Event
from submax.live.store.integrity.order import check_order
from submax.live.store.store import PAGE, Store

EVENTS_AT_ONCE = 20_000
"""The most events of the store in a page of columns: some megabytes. Every page costs the time of a
thousand calls of numpy, whatever its size."""


class LogReader:
    """Pages of the events of a log, whether they are in the archive or in the store.

    Another process may archive events at any time. It records a segment before it deletes the
    events from the store, and the last event of a log is never archived. So if a page is empty, or
    no segment reaches behind its beginning after the page was read, then the page has no gap.

    One reader must not be used by two threads at once.
    """

    def __init__(self, store: Store, name: str) -> None:
        self._store, self._stream = store, log_stream(name)
        self._archive = Archive(store, name)

    def read(self, after: int) -> list[Event]:
        """The next events after a position, in order; an empty list at the end of the log."""
        if after < self._archive.end:
            return self._archive.read(after)
        page = self._store.read(self._stream, after, PAGE)
        if page:
            check_order(after, [event.position for event in page])
            self._archive.follow()
        return self._archive.read(after) if page and after < self._archive.end else page

    def read_page(self, after: int) -> LogPage:
        """A page with the same events as ``read``, by columns; it may begin before them."""
        if after < self._archive.end:
            return self._archive.read_page(after)
        events = self._store.read_columns(self._stream, after, EVENTS_AT_ONCE)
        if len(events):
            check_order(after, events.position)
            self._archive.follow()
        if len(events) and after < self._archive.end:
            return self._archive.read_page(after)
        BACKGROUND.give_way()
        return LogPage.of(events, is_last=len(events) < EVENTS_AT_ONCE)

    def find(self, position: int) -> LogPage | None:
        """A page with the event at a position; None if the log has none."""
        events = self._store.read_columns(self._stream, position - 1, 1)
        if len(events) and events.position[0] == position:
            return LogPage.of(events)
        self._archive.follow()
        if not 0 < position <= self._archive.end:
            return None
        page = self._archive.read_page(position - 1)
        return page if position in page.position else None
