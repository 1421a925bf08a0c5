"""One transaction for all appends that wait at the same time."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Lock, Thread
from typing import NamedTuple

from submax.core.errors import StoreError
from submax.live.store.event import AppendResult, Entry

MAX_APPENDS = 1024
"""The most appends in one transaction, so that the first caller does not wait for very many."""


class QueuedAppend(NamedTuple):
    """The arguments of one append, and the future of its caller."""

    stream: str
    entries: Sequence[Entry]
    done: "Future[list[AppendResult]]"


class GroupCommit:
    """A thread that writes: while it commits one transaction, the next appends are queued.

    ``write`` puts several appends into one transaction, all or none, and raises an error if it
    cannot.
    """

    def __init__(self, write: Callable[[list[QueuedAppend]], list[list[AppendResult]]]) -> None:
        self._write = write
        self._queue: SimpleQueue[QueuedAppend | None] = SimpleQueue()
        self._lock = Lock()
        self._closed = False
        self._process = os.getpid()
        self._thread = Thread(target=self._run, name="submax-writer", daemon=True)
        self._thread.start()

    def append(self, stream: str, entries: Sequence[Entry]) -> "Future[list[AppendResult]]":
        """Queue an append; its future is done after the commit."""
        if os.getpid() != self._process:
            # The writing thread exists only in the parent: the future would never be done.
            raise StoreError(
                "this process was forked after the store was opened, and a store works only in the "
                "process that opened it: open it in each process"
            )
        append = QueuedAppend(stream, entries, Future())
        # A running future cannot be cancelled by a caller that gives up: the thread will set it.
        append.done.set_running_or_notify_cancel()
        # An append queued after the end mark would never be done.
        with self._lock:
            if self._closed:
                raise StoreError("the store is closed: open the bandit again")
            self._queue.put(append)
        return append.done

    def close(self) -> None:
        """Write what is queued, then end the thread."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        going = True
        while going:
            appends: list[QueuedAppend] = []
            going = self._gather(appends)
            if appends:
                self._commit(appends)

    def _gather(self, appends: list[QueuedAppend]) -> bool:
        """Take all appends that are queued, at least one; False if the end mark was reached."""
        while not appends or (len(appends) < MAX_APPENDS and not self._queue.empty()):
            append = self._queue.get()
            if append is None:
                return False
            appends.append(append)
        return True

    def _commit(self, appends: list[QueuedAppend]) -> None:
        try:
            written = self._write(appends)
        except BaseException as error:
            # If one append has a value that the store cannot hold, the others are written alone.
            if len(appends) > 1 and not isinstance(error, StoreError):
                for append in appends:
                    self._commit([append])
                return
            for append in appends:
                append.done.set_exception(error)
            return
        for append, results in zip(appends, written, strict=True):
            append.done.set_result(results)
