"""A thread that draws the decisions of one bandit."""

from queue import SimpleQueue
from threading import Thread

from submax.server.deciding.draw_job import DrawJob


class DrawThread:
    """Runs jobs one after the other, in a thread that does not keep the process from ending."""

    def __init__(self, name: str) -> None:
        self._queue: SimpleQueue[DrawJob | None] = SimpleQueue()
        self._running: DrawJob | None = None
        Thread(target=self._run, name=f"submax-draw-{name}", daemon=True).start()

    @property
    def is_stuck(self) -> bool:
        """Whether the job under way has taken so long that nobody waits for it any more."""
        running = self._running
        return running is not None and running.abandoned

    def start(self, job: DrawJob) -> None:
        """Run a job as soon as the earlier ones have ended."""
        self._queue.put(job)

    def close(self) -> None:
        """End the thread after the jobs that are queued."""
        self._queue.put(None)

    def _run(self) -> None:
        while (job := self._queue.get()) is not None:
            self._running = job
            job.run()
            self._running = None
