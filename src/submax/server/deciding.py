"""Makes decisions for requests that arrive together, and waits until writes are durable."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from submax.bandit.decision import Decision
from submax.bandit.durable import DurableBandit, Prepared
from submax.bandit.store import WRITE_TIMEOUT_SECONDS
from submax.core.errors import InputError, StoreError
from submax.core.processes import in_thread

DECIDE_SECONDS = 2.0
"""How long a policy may take for decisions of single requests: a person waits no longer."""
MANY_SECONDS = 8.0
"""How long it may take for a request of many decisions: less than the 10 seconds for which
``submax.Client`` waits."""
LOOP_SECONDS = 0.01  # for which decisions may occupy the event loop, which answers nobody else then
THREAD_SECONDS = 0.5  # that one batch should take in a thread: others wait for the next batch
GATHER_SECONDS = 0.05  # for which a request waits for the write of others, and is drawn then
MAX_GATHERED = 64  # decisions in a batch

Answer = TypeVar("Answer")
Request = Mapping[str, Any]
"""The arguments of ``DurableBandit.decide``."""
Waiting = tuple[Request, "asyncio.Future[Decision]"]
"""A request, and the future of its decision."""


def write(prepared: Prepared[Answer]) -> "asyncio.Future[Answer]":
    """Write what a bandit prepared; the future is done when the write is durable.

    The write goes on if the caller gives up, because it may be durable already.
    """
    loop = asyncio.get_running_loop()
    waiting: asyncio.Future[Answer] = loop.create_future()

    def deliver(written: "Future[Answer]") -> None:
        timer.cancel()
        if waiting.done():
            return
        if (error := written.exception()) is None:
            waiting.set_result(written.result())
        else:
            waiting.set_exception(error)

    def wake(written: "Future[Answer]") -> None:
        # In the store's thread. If the event loop has ended, so have the requests that waited.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(deliver, written)

    written = prepared.start()
    timer = loop.call_later(WRITE_TIMEOUT_SECONDS, _give_up, waiting)
    written.add_done_callback(wake)
    return waiting


def _give_up(waiting: "asyncio.Future[Any]") -> None:
    if not waiting.done():
        waiting.set_exception(
            StoreError(
                f"the store did not answer within {WRITE_TIMEOUT_SECONDS:.0f} seconds: try again "
                "with the same id"
            )
        )


class Deciding:
    """Makes the decisions of one bandit within a deadline.

    Requests that come while decisions are being written are drawn together when the write ends:
    the store would write them next in any case, and a batch costs little more than one decision.
    Batches of a policy that has shown to be quick are drawn in the event loop, others in a thread,
    as is the first decision of every version. If a deadline passes, decisions are drawn uniformly
    within the guard rails and counted as failures of the bandit. A thread cannot be ended: while
    it is stuck, all decisions are uniform at once, so a bandit occupies at most one thread.
    """

    def __init__(self, bandit: DurableBandit) -> None:
        self.bandit = bandit
        self._gathered: deque[Waiting] = deque()
        self._is_drawing, self._writing = False, 0
        self._task: asyncio.Task[None] | None = None
        self._stuck_threads = 0
        self._many = asyncio.Lock()
        self._revision, self._seconds = 0, 0.0
        """The seconds that a decision took since this revision of the bandit."""

    async def decide(self, request: Request) -> Decision:
        waiting: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        if self._stuck_threads:
            self._start_each([(request, waiting)], uniform=True)
        else:
            self._gathered.append((request, waiting))
            self._next()
        return await waiting

    async def decide_many(self, requests: Sequence[Request]) -> list[Decision]:
        prepared = None
        async with self._many:
            if not self._stuck_threads:
                draw = partial(self._timed, self.bandit.prepare_decisions, requests)
                prepared = await self._within(MANY_SECONDS, draw)
        if prepared is None:
            prepared = self.bandit.prepare_decisions(requests, uniform=True)
        return await write(prepared)

    def _next(self, may_wait: bool = True) -> None:
        """Draw what was gathered, unless it may wait for the write that is under way."""
        count, loop = len(self._gathered), asyncio.get_running_loop()
        if not count or self._is_drawing:
            return
        if may_wait and self._writing and count < MAX_GATHERED:
            if count == 1:
                loop.call_later(GATHER_SECONDS, self._next, False)
            return
        self._is_drawing = True
        loop.call_soon(self._draw)

    def _draw(self) -> None:
        known = self.bandit.revision == self._revision
        in_loop = known and self._seconds <= LOOP_SECONDS
        seconds = LOOP_SECONDS if in_loop else THREAD_SECONDS
        size = max(1, min(MAX_GATHERED, int(seconds / max(self._seconds, 1e-6)))) if known else 1
        batch = [self._gathered.popleft() for _ in range(min(size, len(self._gathered)))]
        draw = partial(self._timed, self.bandit.prepare_together, [each for each, _ in batch])
        if not in_loop or any(self.bandit.waits_for_store(each.get("unit")) for each, _ in batch):
            # The event loop itself does not keep tasks alive.
            self._task = asyncio.ensure_future(self._draw_in_thread(batch, draw))
            self._task.add_done_callback(lambda _: self._drawn())
            return
        try:
            self._start(batch, draw())
        except Exception as error:
            _fail(batch, error)
        self._drawn()

    def _drawn(self) -> None:
        self._is_drawing = False
        self._next()

    async def _draw_in_thread(self, batch: list[Waiting], draw: Callable[[], Any]) -> None:
        try:
            drawn = await self._within(DECIDE_SECONDS, draw)
            if drawn is not None:
                self._start(batch, drawn)
                return
        except Exception as error:
            _fail(batch, error)
            return
        self._start_each([*batch, *self._gathered], uniform=True)
        self._gathered.clear()

    def _start(
        self, batch: list[Waiting], drawn: tuple[list[InputError | None], Prepared[list[Decision]]]
    ) -> None:
        errors, prepared = drawn
        valid = []
        for each, error in zip(batch, errors, strict=True):
            if error is None:
                valid.append(each)
            else:
                _fail([each], error)
        if valid:
            written = write(prepared)
            self._writing += 1
            written.add_done_callback(partial(self._answer, batch=valid))

    def _answer(self, done: "asyncio.Future[list[Decision]]", *, batch: list[Waiting]) -> None:
        self._writing -= 1
        self._next()
        error = done.exception()
        if error is None:
            for (_, waiting), decision in zip(batch, done.result(), strict=True):
                # A caller that gave up has cancelled its future.
                if not waiting.done():
                    waiting.set_result(decision)
        elif len(batch) == 1 or isinstance(error, StoreError):
            _fail(batch, error)
        else:
            # The store cannot hold a value of one of them; nothing was written.
            self._start_each(batch)

    def _start_each(self, batch: list[Waiting], *, uniform: bool = False) -> None:
        for each in batch:
            try:
                self._start([each], self.bandit.prepare_together([each[0]], uniform=uniform))
            except Exception as error:
                _fail([each], error)

    def _timed(
        self, draw: Callable[[Sequence[Request]], Answer], requests: Sequence[Request]
    ) -> Answer:
        revision, begin = self.bandit.revision, time.perf_counter()
        drawn = draw(requests)
        self._seconds = (time.perf_counter() - begin) / len(requests)
        self._revision = revision
        return drawn

    async def _within(self, seconds: float, draw: Callable[[], Answer]) -> Answer | None:
        """What ``draw`` returns in a thread; None if it takes longer than so many seconds."""
        drawn = asyncio.wrap_future(in_thread(draw, f"submax-draw-{self.bandit.name}"))
        try:
            return await asyncio.wait_for(asyncio.shield(drawn), seconds)
        except (TimeoutError, asyncio.CancelledError) as error:
            if drawn.done():
                raise
            self._stuck_threads += 1
            drawn.add_done_callback(self._go_on)
            if isinstance(error, asyncio.CancelledError):
                raise
            return None

    def _go_on(self, drawn: "asyncio.Future[Any]") -> None:
        self._stuck_threads -= 1


def _fail(batch: Sequence[Waiting], error: BaseException) -> None:
    for _, waiting in batch:
        if not waiting.done():
            waiting.set_exception(error)
