"""What became of every decision of a log, outside of memory."""

import tempfile
import weakref
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

RECORD = [("status", "u1"), ("reward", "<f8"), ("late", "<u4")]
"""What is known of the decision at a position, before the parts of its reward; all bytes are 0 if
it has not matured."""
Outcome = tuple[int, int, float, list[float]]
"""Position, number of the status, reward and parts of a decision that has matured."""
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

    def __init__(self, statuses: Sequence[str], parts: Sequence[str] = ()) -> None:
        self._parts = list(parts)
        self._record = np.dtype([*RECORD, ("parts", "<f8", (len(self._parts),))])
        self._numbers = {status: number for number, status in enumerate(statuses)}
        # Not named, so that the system deletes the file even after a crash.
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - it is open as long as this object
        weakref.finalize(self, self._file.close)
        self._outcomes: list[Outcome] = []
        self._late: list[int] = []

    def add(
        self, position: int, status: str, reward: float | None, parts: Mapping[str, float]
    ) -> None:
        """Record that the decision at a position has matured."""
        number = np.nan if reward is None else reward
        found = [parts.get(name, np.nan) for name in self._parts]
        self._outcomes.append((position, self._numbers[status], number, found))
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
        found = np.zeros(len(positions), self._record)
        for block in np.unique(positions // BLOCK).tolist():
            chosen = positions // BLOCK == block
            found[chosen] = self._block(block)[positions[chosen] % BLOCK]
        return found

    def _write(self) -> None:
        """Write what is held in memory."""
        if not self._outcomes and not self._late:
            return
        position = np.array([one[0] for one in self._outcomes], np.int64)
        status = np.array([one[1] for one in self._outcomes], np.uint8)
        reward = np.array([one[2] for one in self._outcomes], np.float64)
        parts = np.array([one[3] for one in self._outcomes], np.float64)
        parts = parts.reshape(len(position), len(self._parts))
        late = np.array(self._late, np.int64)
        touched = np.concatenate([position, late]) // BLOCK
        for block in np.unique(touched).tolist():
            records = self._block(block)
            here = position // BLOCK == block
            places = position[here] % BLOCK
            records["status"][places] = status[here]
            records["reward"][places] = reward[here]
            records["parts"][places] = parts[here]
            np.add.at(records["late"], late[late // BLOCK == block] % BLOCK, 1)
            self._file.seek(block * BLOCK * self._record.itemsize)
            self._file.write(records.tobytes())
        self._outcomes, self._late = [], []

    def _block(self, block: int) -> NDArray[np.void]:
        size = BLOCK * self._record.itemsize
        self._file.seek(block * size)
        # A part that was never written reads as zeros, or is after the end of the file.
        data = self._file.read(size)
        return np.frombuffer(data.ljust(size, b"\0"), self._record).copy()
