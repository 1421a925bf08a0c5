"""A function that is called again and again in a thread."""

import logging
from collections.abc import Callable
from threading import Event, Thread

from submax.core.errors import StoreError

LOG = logging.getLogger("submax")


MAX_PAUSE_SECONDS = 60.0
"""The longest pause between two calls that fail: a store that is down is tried once a minute."""
STOPPING_SECONDS = 3.0
"""How long ``stop`` waits for a call under way, such as a fit: a process must end soon."""


class Background:
    """A thread that calls ``step`` every ``pause`` seconds.

    If a call fails, the error is logged and the pause before the next call is four times as long.
    """

    def __init__(self, name: str, step: Callable[[], object], pause: float) -> None:
        self.failures = 0
        self._step, self._pause, self._name = step, pause, name
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
            pause = self._pause if self._succeeds() else min(4 * pause, MAX_PAUSE_SECONDS)

    def _succeeds(self) -> bool:
        try:
            self._step()
        except StoreError as error:
            LOG.warning("%s: %s", self._name, error)
        except Exception:
            LOG.exception("%s failed, and will be tried again", self._name)
        else:
            return True
        self.failures += 1
        return False
