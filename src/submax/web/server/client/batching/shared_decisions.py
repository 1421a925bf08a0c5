"""Lets threads that ask for decisions at the same time share requests."""

import os
import time
from collections.abc import Callable
from concurrent.futures import Future
from threading import Event, Lock

from submax.bandit.decision import Decision
from submax.core.errors import StoreError
from submax.web.server.client.batching.batches import next_batch
from submax.web.server.client.batching.item import Item, settle
from submax.web.server.client.messages.deadline_error import GRACE_SECONDS, DeadlineError


class WaitingCaller:
    """A thread that waits for its decision, or for its turn to send the requests of others."""

    def __init__(self, body: bytes, until: float | None) -> None:
        self.future: Future[Decision] = Future()
        self.item = Item(body, until, self.future)
        self.woken, self.leads = Event(), False
        self.future.add_done_callback(lambda _: self.woken.set())


class SharedDecisions:
    """Sends the requests of all threads, with at most ``most`` calls under way.

    A thread that finds fewer calls under way sends its request at once, so that nobody waits for
    others to come. Otherwise it waits, and when a call ends, one of the waiting threads sends the
    requests of all of them together. No thread is started for this.
    """

    def __init__(self, send: Callable[[list[Item]], None], most: int) -> None:
        self._send, self._most = send, most
        self._begin()

    def _begin(self) -> None:
        self._lock, self._under_way, self._process = Lock(), 0, os.getpid()
        self._waiting: list[WaitingCaller] = []

    def decide(self, body: bytes, until: float | None) -> Decision:
        """The decision for an encoded request."""
        if self._process != os.getpid():
            # The process was forked, and the threads that sent requests are not in it.
            self._begin()
        mine = WaitingCaller(body, until)
        with self._lock:
            self._waiting.append(mine)
            mine.leads = self._under_way < self._most
            self._under_way += mine.leads
        in_time = True
        try:
            if not mine.leads:
                in_time = mine.woken.wait(_seconds_until(until))
            if mine.leads and not mine.future.done():
                self._lead()
        finally:
            self._leave(mine)
        if not (in_time or mine.future.done()):
            raise DeadlineError.while_waiting()
        return mine.future.result()

    def _lead(self) -> None:
        """Send what waits now, this thread's request included."""
        with self._lock:
            count = next_batch([one.item for one in self._waiting])
            batch, self._waiting = self._waiting[:count], self._waiting[count:]
        items = [one.item for one in batch]
        try:
            self._send(items)
        finally:
            # Only an interrupted thread leaves anybody without an answer.
            for item in items:
                settle(item, StoreError("the request was interrupted: send it again"))

    def _leave(self, mine: WaitingCaller) -> None:
        """Let the next waiting thread send, if this thread had the right to."""
        with self._lock:
            self._waiting = [one for one in self._waiting if one is not mine]
            if not mine.leads:
                return
            mine.leads = False
            if self._waiting:
                self._waiting[0].leads = True
                self._waiting[0].woken.set()
            else:
                self._under_way -= 1


def _seconds_until(until: float | None) -> float | None:
    return None if until is None else max(0.0, until - time.monotonic() + GRACE_SECONDS)
