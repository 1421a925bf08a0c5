"""Appends that arrive together are made durable together."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Lock, Thread
from typing import NamedTuple

from submax.core.errors import StoreError
from submax.live.store.event import Entry, Written

MOST = 1024
"""Appends in one transaction."""


class Batch(NamedTuple):
    """One append, and who waits for it."""

    stream: str
    entries: Sequence[Entry]
    done: "Future[list[Written]]"


class GroupCommit:
    """One thread that writes: while a transaction is made durable, the next one gathers.

    ``write`` puts several appends into one transaction, all or none, and raises where it cannot.
    """

    def __init__(self, write: Callable[[list[Batch]], list[list[Written]]]) -> None:
        self._write = write
        self._queue: SimpleQueue[Batch | None] = SimpleQueue()
        self._lock = Lock()
        self._closed = False
        self._process = os.getpid()
        self._thread = Thread(target=self._run, name="submax-writer", daemon=True)
        self._thread.start()

    def append(self, stream: str, entries: Sequence[Entry]) -> "Future[list[Written]]":
        """Queue; the future is done after the commit."""
        if os.getpid() != self._process:
            # The thread that writes stayed behind in the parent: the future would wait for ever.
            raise StoreError(
                "this process was forked after the store was opened: open it in each process"
            )
        batch = Batch(stream, entries, Future())
        # Begun already: a caller that gives up must not cancel what the thread will answer.
        batch.done.set_running_or_notify_cancel()
        # A batch behind the closing mark would wait for ever.
        with self._lock:
            if self._closed:
                raise StoreError("the store is closed: open the bandit again")
            self._queue.put(batch)
        return batch.done

    def close(self) -> None:
        """Write what is queued, then stop."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        going = True
        while going:
            batches: list[Batch] = []
            going = self._gather(batches)
            if batches:
                self._commit(batches)

    def _gather(self, batches: list[Batch]) -> bool:
        """All that is queued, at least one; False at the end."""
        while not batches or (len(batches) < MOST and not self._queue.empty()):
            batch = self._queue.get()
            if batch is None:
                return False
            batches.append(batch)
        return True

    def _commit(self, batches: list[Batch]) -> None:
        try:
            written = self._write(batches)
        except BaseException as error:
            # A value that the store cannot hold must not fail what came with it.
            if len(batches) > 1 and not isinstance(error, StoreError):
                for batch in batches:
                    self._commit([batch])
                return
            for batch in batches:
                batch.done.set_exception(error)
            return
        for batch, result in zip(batches, written, strict=True):
            batch.done.set_result(result)
