"""A few threads that do the background work of many bandits."""

import time
from heapq import heappop, heappush
from queue import SimpleQueue
from threading import Condition, Thread

from submax.live.running.repeated_step import RepeatedStep

WORKERS = 4
"""Threads that call steps. A fit may take minutes; three others then go on with other bandits."""
SECONDS_PER_STEP = 0.0005
"""The pause of every step is at least this, times the number of steps: looking whether 2000 steps
have work takes less than one hundredth of a core, however many steps there are."""

GATHERING_SECONDS = 0.02
"""By how much a step may be late, so that the thread that waits wakes up fifty times a second."""


class Scheduler:
    """Calls many repeated steps in ``workers`` threads.

    One more thread waits until steps are due, and passes those that have work on to the workers,
    in the order in which they became due. A step is due again a pause after its last call has
    ended, so that every step has its turn before another has two.
    """

    def __init__(self, workers: int = WORKERS) -> None:
        self._changed = Condition()
        self._closed = False
        self._count = 0
        # A number for each turn, because steps that are due at the same time have no order.
        self._turns = 0
        self._waiting: list[tuple[float, int, RepeatedStep]] = []
        self._ready: SimpleQueue[RepeatedStep | None] = SimpleQueue()
        self._workers = workers
        Thread(target=self._dispatch, name="submax-scheduler", daemon=True).start()
        for number in range(workers):
            Thread(target=self._work, name=f"submax-worker-{number}", daemon=True).start()

    def add(self, step: RepeatedStep) -> None:
        """Call a step from now on, until it is stopped."""
        with self._changed:
            self._count += 1
        self._wait(step)

    def close(self) -> None:
        """Call no more steps, and end the threads when the calls under way have ended."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        for _ in range(self._workers):
            self._ready.put(None)

    def _wait(self, step: RepeatedStep) -> None:
        """Let a step wait for its pause."""
        with self._changed:
            self._push(step)
            # If another step is due first, the dispatching thread wakes up early enough.
            if self._waiting and self._waiting[0][2] is step:
                self._changed.notify()

    def _push(self, step: RepeatedStep) -> None:
        if step.stopped:
            self._count -= 1
            return
        self._turns += 1
        due = time.monotonic() + max(step.pause, self._count * SECONDS_PER_STEP)
        heappush(self._waiting, (due, self._turns, step))

    def _dispatch(self) -> None:
        while not self._closed:
            for step in self._due():
                if step.stopped or step.has_work():
                    self._ready.put(step)
                else:
                    with self._changed:
                        self._push(step)

    def _due(self) -> list[RepeatedStep]:
        """Wait until steps are due, and return them."""
        with self._changed:
            seconds = self._waiting[0][0] - time.monotonic() if self._waiting else None
            if seconds is None or seconds > 0:
                # A little longer, so that many steps are due when the thread wakes up.
                self._changed.wait(None if seconds is None else seconds + GATHERING_SECONDS)
            now, due = time.monotonic(), []
            while self._waiting and self._waiting[0][0] <= now:
                due.append(heappop(self._waiting)[2])
            return due

    def _work(self) -> None:
        while (step := self._ready.get()) is not None and not self._closed:
            step.call()
            self._wait(step)
