"""A step that is taken again and again beside the decisions."""

import logging
from collections.abc import Callable
from threading import Event, Thread

from submax.core.errors import StoreError

LOG = logging.getLogger("submax")


LONGEST_PAUSE = 60.0
"""Between steps that fail again and again."""
STOPPING_SECONDS = 3.0


class Background:
    """A thread; a step that fails is logged, and tried again after a pause that grows."""

    def __init__(self, name: str, step: Callable[[], object], pause: float) -> None:
        self.failures = 0
        self._step, self._pause, self._name = step, pause, name
        self._stopping = Event()
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Wait for the step under way, but not for long: what it would have done is done later."""
        self._stopping.set()
        self._thread.join(STOPPING_SECONDS)

    def _run(self) -> None:
        pause = self._pause
        while not self._stopping.wait(pause):
            pause = self._pause if self._succeeds() else min(4 * pause, LONGEST_PAUSE)

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
