"""How long a thread of Python waits until it may run."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

PAUSE_SECONDS = 0.001


class LockProbe:
    """A thread that sleeps a millisecond again and again, and notes how late it wakes up.

    It is late if another thread holds Python's lock, or if all cores are busy.
    """

    def __init__(self) -> None:
        self.seconds_late: list[float] = []

    @contextmanager
    def running(self) -> Iterator[None]:
        """Let the probe run."""
        ended = Event()
        thread = Thread(target=self._run, args=[ended], daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _run(self, ended: Event) -> None:
        while not ended.is_set():
            begin = time.perf_counter()
            time.sleep(PAUSE_SECONDS)
            self.seconds_late.append(time.perf_counter() - begin - PAUSE_SECONDS)
