"""The process that trains models for the one that decides."""

import atexit
import functools
import logging
import os
import pickle
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, Timer
from typing import Any

from submax.core.errors import StoreError
from submax.live.fitting.training.cannot_start_error import CannotStartError
from submax.live.fitting.training.sent_parts import SentParts
from submax.live.fitting.training.training_answer import TrainingAnswer
from submax.live.fitting.training.training_error import TrainingError
from submax.live.fitting.training.training_job import TrainingJob
from submax.live.fitting.training.worker import ENDING_SECONDS, Worker
from submax.live.log.rows.lazy_rows import LazyRows

LOG = logging.getLogger("submax")
IDLE_SECONDS = 300.0
"""After how long without a job the process ends, to free its memory. A bandit with decisions is
fitted at least once in ``refit_seconds``, whose default is 60; a new process would have to import
JAX and to compile the training again, which takes some seconds."""
START_SECONDS = 60.0
"""How long the process may take to start; a second of a slow core, and a machine may be busy."""
STOPS = "the training was broken off or not begun, because the process stops"


class TrainingProcess:
    """Trains models, one at a time, in a process of its own.

    So the libraries that train need no memory in the process that decides, training does not hold
    its lock of Python, and a crash of the training cannot end it. The process is started for the
    first job, kept for the next ones, and ended when there was none for ``idle_seconds``. It ends
    with this process, even if this process is killed.
    """

    def __init__(self, idle_seconds: float = IDLE_SECONDS) -> None:
        self._idle_seconds, self._closed = idle_seconds, False
        # One job at a time; the other lock guards what ``close`` uses during a job.
        self._training, self._lock = Lock(), Lock()
        self._worker: Worker | None = None
        self._sent = SentParts()
        self._idle: Timer | None = None
        self._has_started = False

    @property
    def busy(self) -> bool:
        """Whether a model is being trained, so that another job would have to wait."""
        return self._training.locked()

    def train(self, job: TrainingJob, rows: LazyRows) -> bytes:
        """Return the bytes of the model that is fitted to these rows; wait for jobs under way.

        A job that fails in the process raises an error here; a process that has ended is started
        again for the next job. If the process has never started, a ``CannotStartError`` is raised.
        """
        with self._training:
            self._stop_waiting()
            answer = self._answer(self._running(), job, rows)
            self._end_later()
        for text, category in answer.warnings:
            warnings.warn(text, category, stacklevel=2)
        if answer.error is not None:
            raise answer.error
        if answer.failure:
            LOG.error("the training failed in its process: %s", answer.details)
            raise TrainingError(answer.failure)
        return answer.model

    def close(self) -> None:
        """End the process at once, also during a job, and start no more."""
        with self._lock:
            self._closed = True
            self._stop_waiting()
            if self._worker is not None:
                self._worker.kill()
        if self._training.acquire(timeout=ENDING_SECONDS):
            self._end()
            self._training.release()

    def _running(self) -> Worker:
        """Return the process; it is started if there is none, or if it has ended meanwhile."""
        worker = self._worker
        if worker is not None and not worker.has_ended:
            return worker
        self._end()
        try:
            return self._started()
        except BaseException:
            # If the wait was interrupted, the process has written a line that nobody has read.
            self._end()
            raise

    def _started(self) -> Worker:
        with self._lock:
            if self._closed:
                raise StoreError(STOPS)
            self._sent.clear()
            try:
                worker = self._worker = Worker()
            except OSError as error:
                raise self._not_started(str(error)) from error
        # Without the lock, so that ``close`` need not wait.
        if not worker.is_ready(START_SECONDS):
            complaint, _ = self._end()
            raise StoreError(STOPS) if self._closed else self._not_started(complaint)
        self._has_started = True
        return worker

    def _not_started(self, complaint: str) -> TrainingError:
        kind = TrainingError if self._has_started else CannotStartError
        return kind(
            f"the process that trains models did not start within {START_SECONDS:g} seconds "
            f"({complaint.strip() or 'without a complaint'}): see that sys.executable is Python, "
            "and that the machine has memory for a second process"
        )

    def _answer(self, worker: Worker, job: TrainingJob, rows: LazyRows) -> TrainingAnswer:
        try:
            self._send(worker, job, rows)
            with self._pipe_errors(worker):
                answer: TrainingAnswer = pickle.load(worker.receives)
        except BaseException:
            # The rows could not be read: the process would wait for the rest of them.
            self._end()
            raise
        return answer

    def _send(self, worker: Worker, job: TrainingJob, rows: LazyRows) -> None:
        """Send a job, and those of its rows that the process does not have."""
        parts = tuple(map(self._sent.job_part, rows.parts))
        forgotten = self._sent.surplus({part.key for part in parts if part.key is not None})
        self._write(worker, job._replace(parts=parts, forgotten=forgotten))
        for part, named in zip(rows.parts, parts, strict=True):
            if named.sent:
                # One part at a time, so that never all rows are in the memory of this process.
                columns = part.read() if named.key is None else part.read_whole()
                self._sent.note(named.key, columns)
                self._write(worker, columns)

    def _write(self, worker: Worker, sent: Any) -> None:
        with self._pipe_errors(worker):
            # By this protocol arrays are written from where they are, without a copy.
            pickle.dump(sent, worker.sends, protocol=5)
            # What stays in the buffer would be written again at the end of a child that was forked.
            worker.sends.flush()

    @contextmanager
    def _pipe_errors(self, worker: Worker) -> Iterator[None]:
        """Say that the process has ended if its pipes fail; reading rows may fail as well."""
        try:
            yield
        except (EOFError, OSError, pickle.UnpicklingError) as error:
            raise self._broken(worker) from error

    def _broken(self, worker: Worker) -> Exception:
        """Return the error of a process that has ended during a job."""
        if not self._closed:
            # It has closed its pipes and is about to end; its own status says why.
            worker.wait()
        complaint, status = self._end()
        if self._closed:
            return StoreError(STOPS)
        if complaint:
            LOG.error("the process that trains models wrote before it ended: %s", complaint)
        return TrainingError(
            f"the process that trains models ended with status {status} during a training; the "
            "last version goes on deciding, and the training is tried again: if this happens "
            "often, give the machine more memory, or declare a policy with smaller parameters"
        )

    def _end(self) -> tuple[str, int | None]:
        """End the process, if there is one; return what it complained about, and its status."""
        with self._lock:
            worker, self._worker = self._worker, None
        return ("", None) if worker is None else worker.end()

    def _end_later(self) -> None:
        with self._lock:
            if not self._closed:
                self._idle = Timer(self._idle_seconds, self._end_if_idle)
                self._idle.daemon = True
                self._idle.start()

    def _stop_waiting(self) -> None:
        if self._idle is not None:
            self._idle.cancel()

    def _end_if_idle(self) -> None:
        if self._training.acquire(blocking=False):
            try:
                self._end()
            finally:
                self._training.release()


@functools.cache
def shared_training_process() -> TrainingProcess:
    """Return the training process of all bandits in this process that have none of their own."""
    shared = TrainingProcess()
    atexit.register(shared.close)
    return shared


def _forget_shared() -> None:
    """Let a forked process start a training process of its own.

    The one of its parent may be locked for ever, by a thread that the child does not have.
    """
    if shared_training_process.cache_info().currsize:
        atexit.unregister(shared_training_process().close)
        shared_training_process.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_shared)
