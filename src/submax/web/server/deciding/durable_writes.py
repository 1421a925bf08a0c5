"""Appends to a store, and answers requests when their events are durable."""

import asyncio
from collections import deque
from concurrent.futures import Future

from submax.core.errors import StoreError
from submax.live.bandits.bandit_base import WRITE_TIMEOUT_SECONDS
from submax.live.store.event import AppendResult
from submax.live.store.pending_write import Answer, PendingWrite
from submax.live.store.store import Store

Waiting = asyncio.Future[list[AppendResult]]


class DurableWrites:
    """Appends pending writes, and wakes the requests that wait for them.

    The store finishes appends in a thread of its own. To wake the event loop is a system call, so
    all appends that are finished before the loop runs again share one. They share one timer as
    well. All methods are called in the event loop.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._finished: deque[tuple[Waiting, Future[list[AppendResult]]]] = deque()
        self._woken = False
        # The time at which each waiting request gets an error, in order of these times.
        self._deadlines: dict[Waiting, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    async def write(self, pending: PendingWrite[Answer]) -> Answer:
        """Append the entries of a pending write, and answer when they are durable.

        The write goes on if the caller gives up, because it may be durable already.
        """
        future = self._store.append(pending.stream, pending.entries)
        if future.done():
            return pending.answer(future.result())
        loop = asyncio.get_running_loop()
        waiting: Waiting = loop.create_future()
        self._deadlines[waiting] = loop.time() + WRITE_TIMEOUT_SECONDS
        if self._timer is None:
            self._timer = loop.call_later(WRITE_TIMEOUT_SECONDS, self._expire, loop)
        future.add_done_callback(lambda done: self._finish(loop, waiting, done))
        try:
            return pending.answer(await waiting)
        finally:
            self._deadlines.pop(waiting, None)

    def _finish(
        self,
        loop: asyncio.AbstractEventLoop,
        waiting: Waiting,
        future: "Future[list[AppendResult]]",
    ) -> None:
        """Note a finished append, and wake the event loop; called in the store's thread."""
        self._finished.append((waiting, future))
        # If this is set, the loop has not yet begun to deliver, and will find this append, too.
        if not self._woken:
            self._woken = True
            try:
                loop.call_soon_threadsafe(self._deliver)
            except RuntimeError:
                # The event loop has ended, and with it the requests that waited.
                self._woken = False

    def _deliver(self) -> None:
        self._woken = False
        while self._finished:
            waiting, future = self._finished.popleft()
            if waiting.done():
                continue
            error = future.exception()
            if error is None:
                waiting.set_result(future.result())
            else:
                waiting.set_exception(error)

    def _expire(self, loop: asyncio.AbstractEventLoop) -> None:
        """Give an error to requests that have waited too long, and wait for the next deadline."""
        self._timer, now = None, loop.time()
        for waiting, deadline in list(self._deadlines.items()):
            if deadline > now:
                self._timer = loop.call_later(deadline - now, self._expire, loop)
                break
            if not waiting.done():
                waiting.set_exception(
                    StoreError(
                        f"the store did not answer within {WRITE_TIMEOUT_SECONDS:.0f} seconds: try "
                        "again with the same id"
                    )
                )
