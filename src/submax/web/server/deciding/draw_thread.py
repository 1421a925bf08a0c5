"""A thread that draws the decisions of one bandit."""

from queue import Empty, SimpleQueue
from threading import Lock, Thread

from submax.web.server.deciding.draw_job import DrawJob

IDLE_SECONDS = 1.0
"""How long the thread waits for a job before it ends: most bandits need it only for the first
decision of a version, and a thousand idle threads would take up memory."""


class DrawThread:
    """Runs jobs one after the other, in a thread that does not keep the process from ending.

    The thread is started when it is needed, and ends when there was nothing to do for a while.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: SimpleQueue[DrawJob] = SimpleQueue()
        self._running: DrawJob | None = None
        self._lock, self._started = Lock(), False

    @property
    def is_stuck(self) -> bool:
        """Whether the job under way has taken so long that nobody waits for it any more."""
        running = self._running
        return running is not None and running.abandoned

    def start(self, job: DrawJob) -> None:
        """Run a job as soon as the earlier ones have ended."""
        with self._lock:
            self._queue.put(job)
            if not self._started:
                self._started = True
                Thread(target=self._run, name=f"submax-draw-{self._name}", daemon=True).start()

    def _run(self) -> None:
        while (job := self._next()) is not None:
            self._running = job
            job.run()
            self._running = None

    def _next(self) -> DrawJob | None:
        """The next job; None if there was none for a while, and then the thread must end."""
        try:
            return self._queue.get(timeout=IDLE_SECONDS)
        except Empty:
            with self._lock:
                # A job may have come since, and its caller has not started another thread.
                self._started = not self._queue.empty()
            return self._queue.get() if self._started else None
