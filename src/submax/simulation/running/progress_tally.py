"""How often the caller of a simulation hears of its progress."""

from collections.abc import Callable
from typing import TypeAlias

from submax.simulation.running.recording import Recording

Progress: TypeAlias = Callable[[int, int], None]
"""Called with a number of decisions and a number of updates, over all replicas."""


class ProgressTally:
    """Adds up decisions and updates, and reports them whenever the recording is complete."""

    def __init__(self, progress: Progress | None, replicas: int, recording: Recording) -> None:
        self._progress = progress
        self._replicas = replicas
        self._recording = recording
        self._decisions = self._updates = 0

    def add(self, decisions: int, updates: int) -> None:
        """Count decisions and updates of every replica."""
        self._decisions += decisions
        self._updates += updates
        if self._recording.complete:
            self.finish()

    def finish(self) -> None:
        """Report what was not reported yet."""
        if self._progress is not None and self._decisions:
            self._progress(self._decisions * self._replicas, self._updates * self._replicas)
        self._decisions = self._updates = 0
