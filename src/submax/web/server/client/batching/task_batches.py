"""Gathers the requests of the tasks of an event loop, and sends them together."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from submax.core.errors import StoreError
from submax.web.server.client.batching.batches import next_batch
from submax.web.server.client.batching.item import Item, settle


class TaskBatches:
    """Requests that wait to be sent, with at most ``most`` calls under way.

    They are sent ``gather`` seconds after the first of them; with 0 seconds, all that the tasks of
    one turn of the event loop ask for are sent together. If ``most`` calls are under way, they
    wait until one has ended.
    """

    def __init__(
        self, send: Callable[[list[Item]], Awaitable[None]], most: int, gather: float
    ) -> None:
        self._send, self._most, self._gather = send, most, gather
        self._waiting: list[Item] = []
        self._scheduled = False
        self._tasks: set[asyncio.Task[None]] = set()

    def put(self, body: bytes, until: float | None) -> "asyncio.Future[Any]":
        """Queue a request, and return the future of its answer."""
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        # If nobody waits any more, an error is nobody's.
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._waiting.append(Item(body, until, future))
        if not self._scheduled:
            self._scheduled = True
            if self._gather:
                loop.call_later(self._gather, self._begin)
            else:
                loop.call_soon(self._begin)
        return future

    async def flush(self) -> None:
        """Wait until every request that was queued before is answered."""
        while self._waiting or self._tasks:
            self._begin()
            await asyncio.wait(self._tasks)

    def _begin(self) -> None:
        self._scheduled = False
        while self._waiting and len(self._tasks) < self._most:
            count = next_batch(self._waiting)
            batch, self._waiting = self._waiting[:count], self._waiting[count:]
            task = asyncio.get_running_loop().create_task(self._sent(batch))
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        # Those that wait for a call to end have been gathered long enough.
        if self._waiting and not self._scheduled:
            self._begin()

    async def _sent(self, batch: list[Item]) -> None:
        try:
            await self._send(batch)
        finally:
            # Only an event loop that ends leaves anybody without an answer.
            for item in batch:
                settle(item, StoreError("the request was interrupted: send it again"))
