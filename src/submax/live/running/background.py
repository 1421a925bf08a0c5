"""A function that is called again and again in a thread."""

from collections.abc import Callable
from threading import Event, Thread

from submax.live.running.repeated_step import RepeatedStep
from submax.live.running.scheduler import Scheduler

STOPPING_SECONDS = 3.0
"""How long ``stop`` waits for a call under way, such as a fit: a process must end soon."""


class Background:
    """Calls ``step`` every ``pause`` seconds, see ``RepeatedStep``.

    It has a thread of its own, or shares those of a ``scheduler`` with others. In the latter case
    ``has_work`` is asked before each call, so that a step without work costs next to nothing.
    """

    def __init__(
        self,
        name: str,
        step: Callable[[], object],
        pause: float,
        *,
        scheduler: Scheduler | None = None,
        has_work: Callable[[], bool] = lambda: True,
    ) -> None:
        self._repeated = RepeatedStep(name, step, pause, has_work)
        self._stopping = Event()
        self._thread: Thread | None = None
        if scheduler is None:
            self._thread = Thread(target=self._run, name=name, daemon=True)
            self._thread.start()
        else:
            scheduler.add(self._repeated)

    @property
    def failures(self) -> int:
        """How many calls failed."""
        return self._repeated.failures

    def stop(self) -> None:
        """End the calls; wait for the call under way, but not for longer than some seconds."""
        self._stopping.set()
        self._repeated.stop(STOPPING_SECONDS)
        if self._thread is not None:
            self._thread.join(STOPPING_SECONDS)

    def _run(self) -> None:
        while not self._stopping.wait(self._repeated.pause):
            self._repeated.call()
