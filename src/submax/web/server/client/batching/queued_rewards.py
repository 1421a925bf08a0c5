"""Gathers the rewards of all threads for a few milliseconds, and sends them together."""

import os
import time
from collections.abc import Callable
from concurrent.futures import Future
from threading import Condition, Thread

from submax.bandit.decision import Receipt
from submax.core.errors import StoreError
from submax.web.server.client.batching.batches import next_batch
from submax.web.server.client.batching.item import Item, settle

MOST_QUEUED = 10_000
"""Rewards that wait to be sent: if there are more, a caller waits until some are sent."""


class QueuedRewards:
    """The rewards that wait to be sent, and a thread that sends them while there are any.

    The thread is not a daemon: Python waits for it before it ends, so that no reward is lost that
    was queued. The thread ends when nothing is queued.
    """

    def __init__(self, send: Callable[[list[Item]], None], gather: float) -> None:
        self._send, self._gather = send, gather
        self._begin()

    def _begin(self) -> None:
        self._changed, self._process = Condition(), os.getpid()
        self._queued: list[Item] = []
        self._unanswered, self._running = 0, False
        self._errors: list[BaseException] = []

    def put(self, body: bytes, until: float | None, *, awaited: bool) -> "Future[Receipt]":
        """Queue a reward; if nobody awaits its receipt, its error is kept for ``flush``."""
        if self._process != os.getpid():
            # The process was forked. What its parent has queued is sent by the parent.
            self._begin()
        future: Future[Receipt] = Future()
        if not awaited:
            future.add_done_callback(self._keep_error)
        with self._changed:
            self._changed.wait_for(lambda: len(self._queued) < MOST_QUEUED)
            self._queued.append(Item(body, until, future))
            self._unanswered += 1
            start, self._running = not self._running, True
        if start:
            Thread(target=self._run, name="submax-client-rewards").start()
        return future

    def flush(self) -> None:
        """Wait until every queued reward is answered; raise the first error that nobody got."""
        with self._changed:
            self._changed.wait_for(lambda: not self._unanswered)
            errors, self._errors = self._errors, []
        if errors:
            raise StoreError(
                f"{len(errors)} queued rewards were not stored, the first because: {errors[0]}"
            ) from errors[0]

    def _keep_error(self, future: "Future[Receipt]") -> None:
        error = future.exception()
        if error is not None:
            self._errors.append(error)

    def _run(self) -> None:
        while True:
            time.sleep(self._gather)
            with self._changed:
                count = next_batch(self._queued)
                batch, self._queued = self._queued[:count], self._queued[count:]
                self._running = bool(batch)
                self._changed.notify_all()
            if not batch:
                return
            try:
                self._send(batch)
            except Exception as error:
                for item in batch:
                    settle(item, error)
            with self._changed:
                self._unanswered -= len(batch)
                self._changed.notify_all()
