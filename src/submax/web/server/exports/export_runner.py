"""Runs exports, a few at a time."""

import logging
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from threading import BoundedSemaphore, Lock
from typing import IO

import msgspec

from submax.core.decoding import known_type
from submax.core.errors import InputError, StoreError
from submax.live.log.export import Export
from submax.live.store.store import Store
from submax.web.server.exports.export_job import ExportFailure, ExportJob
from submax.web.server.exports.too_many_exports_error import TooManyExportsError

LOG = logging.getLogger("submax")
MAX_EXPORTS = 2
"""Exports at a time. Each reads a whole log, and takes a core and some hundred megabytes."""
MODULE = "submax.web.server.exports.export_job"


class ExportRunner:
    """Writes exports in processes of their own, so that they do not slow down decisions.

    In the server's process an export would hold Python's lock for milliseconds at a time, and
    decisions would wait for it. Only a store in memory, which no other process can read, is
    exported in the server's process.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._slots = BoundedSemaphore(MAX_EXPORTS)
        self._lock, self._closed = Lock(), False
        self._running: set[subprocess.Popen[bytes]] = set()

    def write(self, bandit: str, path: Path) -> None:
        """Export the log of a bandit as Parquet; refused if too many exports are under way."""
        if not self._slots.acquire(blocking=False):
            raise TooManyExportsError(
                f"{MAX_EXPORTS} exports are being written, and no more are allowed at a time: try "
                "again when one of them has ended"
            )
        try:
            if self._store.place is None:
                Export(self._store, bandit).write(path)
            else:
                self._run(ExportJob(self._store.place, bandit, str(path)))
        finally:
            self._slots.release()

    def close(self) -> None:
        """End the exports under way, and start no more."""
        with self._lock:
            self._closed = True
            for process in self._running:
                process.kill()

    def _run(self, job: ExportJob) -> None:
        with tempfile.TemporaryFile() as complaints, self._started(complaints) as process:
            try:
                answer = _answer(process, job)
            finally:
                with self._lock:
                    self._running.discard(process)
            complaints.seek(0)
            complaint = complaints.read().decode(errors="replace")
        if process.returncode != 0:
            LOG.error("the export of %s failed: %s", job.bandit, complaint)
            raise StoreError("the export was broken off on the server: try again, or see its log")
        if answer:
            failure = msgspec.json.decode(answer, type=known_type(ExportFailure))
            raise (StoreError if failure.outage else InputError)(failure.sentence)

    def _started(self, complaints: IO[bytes]) -> "subprocess.Popen[bytes]":
        pipe = subprocess.PIPE
        # The process finds the same modules as this one.
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        with self._lock:
            if self._closed:
                raise StoreError("the server stops: try again later")
            process = subprocess.Popen(
                [sys.executable, "-m", MODULE],
                stdin=pipe,
                stdout=pipe,
                stderr=complaints,
                env=environment,
            )
            self._running.add(process)
        return process


def _answer(process: "subprocess.Popen[bytes]", job: ExportJob) -> bytes:
    """Send a job to a process, wait until the process ends, and return what it printed."""
    if process.stdin is None or process.stdout is None:
        raise StoreError("the export has no pipes: this is a defect of submax")
    # The address of a database may contain a password, and arguments can be read by others.
    with suppress(BrokenPipeError):
        process.stdin.write(msgspec.json.encode(job) + b"\n")
        process.stdin.flush()
    # Standard input stays open meanwhile: the process ends when it is closed.
    answer = process.stdout.read()
    process.wait()
    return answer
