"""What became of every decision of a log, outside of memory."""

import tempfile
import weakref

import numpy as np
from numpy.typing import NDArray

from submax.live.log.outcomes import Outcomes

RECORD = [("status", "u1"), ("reward", "<f8"), ("late", "<u4")]
"""What is known of the decision at a position, before the parts of its reward; all bytes are 0 if
it has not matured."""
MATURED = [("position", "i8"), ("status", "u1"), ("reward", "f8")]
BLOCK = 1 << 16
"""Positions whose records are read and written together: less than a megabyte."""
BUFFERED = 50_000
"""Decisions and late rewards that are held in memory before they are written."""


class OutcomeFile:
    """One record for each position, in a temporary file that is deleted with this object.

    A ledger tells it what becomes of decisions. Memory holds some of the last records only, so that
    it does not grow with the log. ``parts`` is the number of parts of a reward.
    """

    def __init__(self, parts: int = 0) -> None:
        self._record = np.dtype([*RECORD, ("parts", "<f8", (parts,))])
        self._matured = np.dtype([*MATURED, ("parts", "f8", (parts,))])
        # Not named, so that the system deletes the file even after a crash.
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - it is open as long as this object
        weakref.finalize(self, self._file.close)
        self._outcomes: list[NDArray[np.void]] = []
        self._late: list[NDArray[np.int64]] = []
        self._buffered = 0

    def matured(self, position: NDArray[np.int64], outcomes: Outcomes) -> None:
        """Record that decisions have matured."""
        records = np.empty(len(position), self._matured)
        records["position"], records["status"] = position, outcomes.status
        records["reward"], records["parts"] = outcomes.reward, outcomes.parts
        self._outcomes.append(records)
        self._written_if_full(len(position))

    def late_rewards(self, position: NDArray[np.int64]) -> None:
        """Count late rewards of decisions."""
        self._late.append(position)
        self._written_if_full(len(position))

    def _written_if_full(self, new: int) -> None:
        self._buffered += new
        if self._buffered >= BUFFERED:
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
        outcomes = np.concatenate([np.empty(0, self._matured), *self._outcomes])
        late = np.concatenate([np.empty(0, np.int64), *self._late])
        touched = np.concatenate([outcomes["position"], late]) // BLOCK
        for block in np.unique(touched).tolist():
            records = self._block(block)
            here = outcomes[outcomes["position"] // BLOCK == block]
            places = here["position"] % BLOCK
            for name in ("status", "reward", "parts"):
                records[name][places] = here[name]
            np.add.at(records["late"], late[late // BLOCK == block] % BLOCK, 1)
            self._file.seek(block * BLOCK * self._record.itemsize)
            self._file.write(records.tobytes())
        self._outcomes, self._late, self._buffered = [], [], 0

    def _block(self, block: int) -> NDArray[np.void]:
        size = BLOCK * self._record.itemsize
        self._file.seek(block * size)
        # A part that was never written reads as zeros, or is after the end of the file.
        data = self._file.read(size)
        return np.frombuffer(data.ljust(size, b"\0"), self._record).copy()
