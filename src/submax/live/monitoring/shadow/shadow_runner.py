"""The thread of a shadow, which exists only while there is one."""

from submax.live.monitoring.shadow.shadow_worker import ShadowWorker
from submax.live.running.background import Background

SHADOW_SECONDS = 1.0
"""Pause between two steps of a shadow: decisions are judged together, in few events."""


class ShadowRunner:
    """Starts a thread for the worker when a shadow is set, and ends it when there is none.

    The thread belongs to the shadow alone: one that does not return keeps no other work waiting.
    """

    def __init__(self, name: str, worker: ShadowWorker) -> None:
        self._name, self._worker = name, worker
        self._background: Background | None = None

    def has_work(self) -> bool:
        """Whether ``supervise`` may have anything to do."""
        return self._worker.wanted or self._background is not None

    def supervise(self) -> None:
        """Start or end the thread, and switch off a shadow that does not return."""
        if not self._worker.wanted:
            self.stop()
        elif self._background is None:
            self._background = Background(
                f"submax-shadow-{self._name}", self._worker.step, SHADOW_SECONDS
            )
        self._worker.supervise()

    def stop(self) -> None:
        """End the thread; a step under way is waited for, for some seconds."""
        if self._background is not None:
            self._background.stop()
            self._background = None
