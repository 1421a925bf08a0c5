"""A step that is taken again and again beside the decisions."""

import logging
from collections.abc import Callable
from threading import Event, Thread

from submax.core.errors import StoreUnavailable

LOG = logging.getLogger("submax")


class Background:
    """A thread; a step that fails is logged, and tried again at the next time."""

    def __init__(self, name: str, step: Callable[[], object], pause: float) -> None:
        self.failures = 0
        self._step, self._pause, self._name = step, pause, name
        self._stopping = Event()
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Wait for the step under way."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.wait(self._pause):
            try:
                self._step()
            except StoreUnavailable as error:
                self.failures += 1
                LOG.warning("%s: %s", self._name, error)
            except Exception:
                self.failures += 1
                LOG.exception("%s failed, and will be tried again", self._name)
