"""A function that is called again and again in a thread."""

import logging
import time
from collections.abc import Callable
from threading import Event, Thread

from submax.core.errors import StoreError

LOG = logging.getLogger("submax")


MAX_PAUSE_SECONDS = 60.0
"""The longest pause between two calls that fail by a defect: more calls would fail as well."""
OUTAGE_PAUSE_SECONDS = 1.0
"""The longest pause while the store cannot be reached: work goes on soon after the outage."""
LOG_SECONDS = 60.0
"""An outage is written to the log at its begin, its end, and this often in between."""
STOPPING_SECONDS = 3.0
"""How long ``stop`` waits for a call under way, such as a fit: a process must end soon."""


class Background:
    """A thread that calls ``step`` every ``pause`` seconds.

    If a call fails, the pause before the next call is four times as long, up to a second if the
    store cannot be reached, and up to a minute after other errors.
    """

    def __init__(self, name: str, step: Callable[[], object], pause: float) -> None:
        self.failures = 0
        self._step, self._pause, self._name = step, pause, name
        self._outage_logged: float | None = None
        self._stopping = Event()
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; wait for the call under way, but not for longer than some seconds."""
        self._stopping.set()
        self._thread.join(STOPPING_SECONDS)

    def _run(self) -> None:
        pause = self._pause
        while not self._stopping.wait(pause):
            longest = self._longest_pause()
            pause = self._pause if longest is None else max(self._pause, min(4 * pause, longest))

    def _longest_pause(self) -> float | None:
        """Call ``step``; the longest pause that its failure allows, None if it did not fail."""
        try:
            self._step()
        except StoreError as error:
            self._log_outage(error)
            longest = OUTAGE_PAUSE_SECONDS
        except Exception:
            LOG.exception("%s failed, and will be tried again", self._name)
            longest = MAX_PAUSE_SECONDS
        else:
            if self._outage_logged is not None:
                LOG.warning("%s: the store can be used again", self._name)
                self._outage_logged = None
            return None
        self.failures += 1
        return longest

    def _log_outage(self, error: StoreError) -> None:
        now = time.monotonic()
        if self._outage_logged is None or now - self._outage_logged >= LOG_SECONDS:
            LOG.warning("%s: %s", self._name, error)
            self._outage_logged = now
