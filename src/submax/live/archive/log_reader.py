"""Reads the whole log of a bandit: the archive, and then the store."""

from collections.abc import Sequence

from submax.core.errors import InputError
from submax.live.archive.archive import Archive
from submax.live.log.bandits import log_stream
from submax.live.store.event import Event
from submax.live.store.event_columns import EventColumns
from submax.live.store.store import PAGE, Store


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
            _check_order(after, [event.position for event in page])
            self._archive.follow()
        return self._archive.read(after) if page and after < self._archive.end else page

    def read_columns(self, after: int) -> EventColumns:
        """The same events as ``read``, by columns."""
        if after < self._archive.end:
            return EventColumns.of(self._archive.read(after))
        page = self._store.read_columns(self._stream, after, PAGE)
        if page.position:
            _check_order(after, page.position)
            self._archive.follow()
        return self.read_columns(after) if page.position and after < self._archive.end else page

    def find(self, key: str, position: int) -> Event | None:
        """The event with a key at a position; None if the log has none.

        A key can be used again after its event was archived, so that only both together are unique.
        """
        event = self._store.find(self._stream, key)
        if event is not None and event.position == position:
            return event
        self._archive.follow()
        event = self._archive.at(position)
        return event if event is not None and event.key == key else None


def _check_order(after: int, positions: Sequence[int]) -> None:
    """Refuse positions that do not rise: whoever reads on after the last one would never end."""
    before = [after, *positions[:-1]]
    if any(one <= last for last, one in zip(before, positions, strict=True)):
        raise InputError(
            f"the events after position {after} are not in order, so that the store is damaged: "
            "run submax doctor, or restore a backup"
        )
