"""One transaction for all appends that wait at the same time."""

import os
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Lock, Thread
from typing import NamedTuple

from submax.core.errors import StoreError
from submax.core.optional import SPANS
from submax.live.store.event import AppendResult, Entry

MAX_APPENDS = 1024
"""The most appends in one transaction: a limit, so that no caller waits for a very long one."""


class QueuedAppend(NamedTuple):
    """The arguments of one append, and the future of its caller."""

    stream: str
    entries: Sequence[Entry]
    done: "Future[list[AppendResult]]"


class GroupCommit:
    """A background thread that writes the appends of all threads to a store.

    While the thread commits one transaction, further appends wait in a queue, and the next
    transaction writes all of them. So the cost of a commit is shared.

    ``write`` writes several appends in one transaction and returns the results of each. If it
    fails, it raises an error and nothing was written, except that a ``StoreError`` may leave open
    whether the transaction was committed.
    """

    def __init__(self, write: Callable[[list[QueuedAppend]], list[list[AppendResult]]]) -> None:
        self.appended: Counter[str] = Counter()
        """How many appends to each stream were committed, or may have been."""
        self._write = write
        self._queue: SimpleQueue[QueuedAppend | None] = SimpleQueue()
        self._lock = Lock()
        self._closed = False
        self._process = os.getpid()
        self._thread = Thread(target=self._run, name="submax-writer", daemon=True)
        self._thread.start()

    def append(self, stream: str, entries: Sequence[Entry]) -> "Future[list[AppendResult]]":
        """Queue an append. The future has its results after the commit, or the error of ``write``.

        A ``StoreError`` is raised at once if the store is closed or was opened by another process.
        """
        if os.getpid() != self._process:
            # The writing thread exists only in the parent: the future would never be done.
            raise StoreError(
                "this process was forked after the store was opened, and a store works only in the "
                "process that opened it: open it in each process"
            )
        append = QueuedAppend(stream, entries, Future())
        # A running future cannot be cancelled by a caller that gives up: the thread will set it.
        append.done.set_running_or_notify_cancel()
        # An append that is queued behind the None of `close` would never be written.
        with self._lock:
            if self._closed:
                raise StoreError("the store is closed: open the bandit again")
            self._queue.put(append)
        return append.done

    def close(self) -> None:
        """Write all queued appends, then end the thread; a second call does nothing."""
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
        """Wait for an append, and move all queued ones to ``appends``, up to the limit.

        Return False if the queue ended with the None of ``close``.
        """
        while not appends or (len(appends) < MAX_APPENDS and not self._queue.empty()):
            append = self._queue.get()
            if append is None:
                return False
            appends.append(append)
        return True

    def _commit(self, appends: list[QueuedAppend]) -> None:
        try:
            with SPANS.span("submax.store.write", appends=len(appends)):
                written = self._write(appends)
        except BaseException as error:
            # If one append has a value that the store cannot hold, each append is written in a
            # transaction of its own, so that only the bad one fails. After a StoreError nothing is
            # repeated here: it concerns all appends, and the transaction may have been committed.
            if len(appends) > 1 and not isinstance(error, StoreError):
                for append in appends:
                    self._commit([append])
                return
            for append in appends:
                self.appended[append.stream] += 1
                append.done.set_exception(error)
            return
        for append in appends:
            self.appended[append.stream] += 1
        for append, results in zip(appends, written, strict=True):
            append.done.set_result(results)
