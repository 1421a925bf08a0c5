"""A clock for tests."""

from dataclasses import dataclass


@dataclass
class ManualClock:
    """A clock that stands still until ``now`` is set: ``submax.open(..., clock=ManualClock())``."""

    now: float = 1e9

    def __call__(self) -> float:
        return self.now
