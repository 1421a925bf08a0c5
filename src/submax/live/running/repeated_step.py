"""A function that is called again and again, more rarely while it fails."""

import logging
import time
from collections.abc import Callable
from threading import Lock

from submax.core.errors import StoreError

LOG = logging.getLogger("submax")
MAX_PAUSE_SECONDS = 60.0
"""The longest pause between two calls that fail by a defect: more calls would fail as well."""
OUTAGE_PAUSE_SECONDS = 1.0
"""The longest pause while the store cannot be reached: work goes on soon after the outage."""
LOG_SECONDS = 60.0
"""An outage is written to the log at its begin, its end, and this often in between."""


class RepeatedStep:
    """A ``step`` to be called every ``pause`` seconds.

    If a call fails, the pause before the next call is four times as long, up to a second if the
    store cannot be reached, and up to a minute after other errors. ``has_work`` says, without
    reading the store, whether a call may have anything to do.
    """

    def __init__(
        self, name: str, step: Callable[[], object], pause: float, has_work: Callable[[], bool]
    ) -> None:
        self.name, self.has_work = name, has_work
        self.failures, self.stopped = 0, False
        self.pause, self._step, self._shortest = pause, step, pause
        self._outage_logged: float | None = None
        self._calling = Lock()

    def call(self) -> None:
        """Call ``step`` unless it was stopped, and set the ``pause`` before the next call."""
        with self._calling:
            if self.stopped:
                return
            longest = self._longest_pause()
        self.pause = (
            self._shortest if longest is None else max(self._shortest, min(4 * self.pause, longest))
        )

    def stop(self, seconds: float) -> None:
        """Begin no further call; wait for the one under way, for some seconds at most."""
        self.stopped = True
        if self._calling.acquire(timeout=seconds):
            self._calling.release()

    def _longest_pause(self) -> float | None:
        """Call ``step``; the longest pause that its failure allows, None if it did not fail."""
        try:
            self._step()
        except StoreError as error:
            self._log_outage(error)
            longest = OUTAGE_PAUSE_SECONDS
        except Exception:
            LOG.exception("%s failed, and will be tried again", self.name)
            longest = MAX_PAUSE_SECONDS
        else:
            if self._outage_logged is not None:
                LOG.warning("%s: the store can be used again", self.name)
                self._outage_logged = None
            return None
        self.failures += 1
        return longest

    def _log_outage(self, error: StoreError) -> None:
        now = time.monotonic()
        if self._outage_logged is None or now - self._outage_logged >= LOG_SECONDS:
            LOG.warning("%s: %s", self.name, error)
            self._outage_logged = now
