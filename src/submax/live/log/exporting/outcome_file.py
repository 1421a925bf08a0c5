"""What became of every decision of a log, outside of memory."""

import tempfile
import weakref
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

RECORD = np.dtype([("status", "u1"), ("reward", "<f8"), ("late", "<u4")])
"""What is known of the decision at a position; all bytes are 0 if it has not matured."""
BLOCK = 1 << 16
"""Positions whose records are read and written together: less than a megabyte."""
BUFFERED = 50_000
"""Decisions and late rewards that are held in memory before they are written."""


class OutcomeFile:
    """One record for each position, in a temporary file that is deleted with this object.

    Memory holds some of the last records only, so that it does not grow with the log. ``statuses``
    are the names of what can become of a decision; number 0 is that of a decision that has not
    matured.
    """

    def __init__(self, statuses: Sequence[str]) -> None:
        self._numbers = {status: number for number, status in enumerate(statuses)}
        # Not named, so that the system deletes the file even after a crash.
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - it is open as long as this object
        weakref.finalize(self, self._file.close)
        self._outcomes: list[tuple[int, int, float]] = []
        self._late: list[int] = []

    def add(self, position: int, status: str, reward: float | None) -> None:
        """Record that the decision at a position has matured."""
        number = np.nan if reward is None else reward
        self._outcomes.append((position, self._numbers[status], number))
        if len(self._outcomes) >= BUFFERED:
            self._write()

    def add_late(self, position: int) -> None:
        """Count a late reward of the decision at a position."""
        self._late.append(position)
        if len(self._late) >= BUFFERED:
            self._write()

    def read(self, positions: NDArray[np.int64]) -> NDArray[np.void]:
        """Return the records at positions, which rise."""
        self._write()
        found = np.zeros(len(positions), RECORD)
        for block in np.unique(positions // BLOCK).tolist():
            chosen = positions // BLOCK == block
            found[chosen] = self._block(block)[positions[chosen] % BLOCK]
        return found

    def _write(self) -> None:
        """Write what is held in memory."""
        if not self._outcomes and not self._late:
            return
        outcomes = np.array(
            self._outcomes, np.dtype([("position", "i8"), ("status", "u1"), ("reward", "f8")])
        )
        late = np.array(self._late, np.int64)
        touched = np.concatenate([outcomes["position"], late]) // BLOCK
        for block in np.unique(touched).tolist():
            records = self._block(block)
            here = outcomes[outcomes["position"] // BLOCK == block]
            places = here["position"] % BLOCK
            records["status"][places], records["reward"][places] = here["status"], here["reward"]
            np.add.at(records["late"], late[late // BLOCK == block] % BLOCK, 1)
            self._file.seek(block * BLOCK * RECORD.itemsize)
            self._file.write(records.tobytes())
        self._outcomes, self._late = [], []

    def _block(self, block: int) -> NDArray[np.void]:
        size = BLOCK * RECORD.itemsize
        self._file.seek(block * size)
        # A part that was never written reads as zeros, or is after the end of the file.
        data = self._file.read(size)
        return np.frombuffer(data.ljust(size, b"\0"), RECORD).copy()
