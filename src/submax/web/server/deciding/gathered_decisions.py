"""Decides together for requests that arrive at the same time."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from submax.bandit.decision import Decision
from submax.core.errors import InputError, StoreError
from submax.live.background import BACKGROUND
from submax.live.store.pending_write import PendingWrite, joined
from submax.web.server.deciding.durable_writes import DurableWrites
from submax.web.server.deciding.timed_draws import TimedDraws
from submax.web.server.interface.messages import Decide

MAX_GATHERED = 64
"""Decisions that are drawn together: the event loop answers nobody else meanwhile."""
Waiting = asyncio.Future[Decision]


class GatheredDecisions:
    """Draws and writes the decisions of one bandit.

    The requests that the event loop reads in one turn are drawn as one array and appended at once,
    which takes much less time than one by one. Nobody waits longer for this. If the version that
    decides is not quick, each decision is drawn by itself, in the thread of ``draws``.
    """

    def __init__(self, draws: TimedDraws, writes: DurableWrites) -> None:
        self.draws, self._writes = draws, writes
        self._gathered: list[tuple[Decide, Waiting]] = []
        # The event loop itself does not keep tasks alive.
        self._tasks: set[asyncio.Task[None]] = set()

    async def decide_many(self, requests: Sequence[Decide]) -> list[Decision]:
        """Make several decisions, all or none, which are durable afterwards."""
        with BACKGROUND.held_off():
            return await self._writes.write(joined(await self.draws.many(requests)))

    async def decide(self, request: Decide) -> Decision:
        """Make a decision, which is durable afterwards."""
        with BACKGROUND.held_off():
            return await self._decided(request)

    async def _decided(self, request: Decide) -> Decision:
        if not self.draws.is_quick_for(request):
            return await self._writes.write(await self.draws.one(request))
        loop = asyncio.get_running_loop()
        waiting: Waiting = loop.create_future()
        if not self._gathered:
            loop.call_soon(self._decide_gathered)
        self._gathered.append((request, waiting))
        return await waiting

    def _decide_gathered(self) -> None:
        gathered, self._gathered = self._gathered[:MAX_GATHERED], self._gathered[MAX_GATHERED:]
        if self._gathered:
            asyncio.get_running_loop().call_soon(self._decide_gathered)
        # The version may have been replaced since the requests came.
        if not self.draws.is_quick:
            for request, waiting in gathered:
                self._start(self._decide_one(request, waiting))
            return
        try:
            drawn = self.draws.each([request for request, _ in gathered])
        except Exception as error:
            for _, waiting in gathered:
                _fail(waiting, error)
            return
        valid = []
        for found, (_, waiting) in zip(drawn, gathered, strict=True):
            if isinstance(found, InputError):
                _fail(waiting, found)
            else:
                valid.append((found, waiting))
        if valid:
            self._start(self._write(valid))

    async def _decide_one(self, request: Decide, waiting: Waiting) -> None:
        try:
            decision = await self._writes.write(await self.draws.one(request))
        except Exception as error:
            _fail(waiting, error)
        else:
            _answer(waiting, decision)

    async def _write(self, drawn: list[tuple[PendingWrite[Decision], Waiting]]) -> None:
        try:
            decisions = await self._writes.write(joined([pending for pending, _ in drawn]))
        except Exception as error:
            # After a StoreError the decisions may have been written, and nothing is repeated. After
            # other errors nothing was written, and only the request with a bad value fails.
            if len(drawn) > 1 and not isinstance(error, StoreError):
                for one in drawn:
                    self._start(self._write([one]))
                return
            for _, waiting in drawn:
                _fail(waiting, error)
            return
        for (_, waiting), decision in zip(drawn, decisions, strict=True):
            _answer(waiting, decision)

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _answer(waiting: Waiting, decision: Decision) -> None:
    # A caller that gave up has cancelled its future.
    if not waiting.done():
        waiting.set_result(decision)


def _fail(waiting: Waiting, error: Exception) -> None:
    if not waiting.done():
        waiting.set_exception(error)
