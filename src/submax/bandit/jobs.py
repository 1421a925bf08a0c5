"""Long jobs in a process of their own: fits, exports, checks of backups.

The process is ``python -m submax.bandit.jobs``. It is not forked, and does not run the user's
script again as a spawned process would. Jobs and answers are pickles in its pipes.
"""

import atexit
import importlib
import logging
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Lock, Thread, Timer
from typing import Any, BinaryIO, NamedTuple, ParamSpec, TypeVar, cast

from submax.core.errors import Error, StoreError, one_line
from submax.core.processes import SINGLE_THREAD

LOG = logging.getLogger("submax")
IDLE_SECONDS = 300.0
"""After how long without a job the process ends, to free its memory. A bandit with decisions is
fitted at least once in ``refit_seconds``, whose default is 60; a new process would have to import
JAX and to compile the training again, which takes some seconds."""
START_SECONDS = 60.0
"""Startup takes about 1 s of CPU; allow for a busy machine."""
ENDING_SECONDS = 5.0
"""How long a process that was killed may take to end."""
NICENESS = 10
"""A low priority: if all cores are busy, decisions come before jobs."""
STDERR_TAIL_BYTES = 2000
"""How much of what the process wrote to standard error is part of a message."""
READY = b"submax-job\n"
"""What the process writes when it has started."""
IDLE_STATUS = 75
"""The exit status of a process that has ended because there was no job."""
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class JobError(Error, RuntimeError):
    """A job failed: its function raised an error, or its process has ended or took too long."""

    default_code = "job-failed"


class NoProcessError(JobError):
    """No second process can be started from this one."""


class Job(NamedTuple):
    """A function by its module and name, and its arguments."""

    module: str
    function: str
    arguments: tuple[Any, ...]
    named: dict[str, Any]


class Answer(NamedTuple):
    """The ``result`` of a job, or why there is none; ``warnings`` were raised on the way.

    ``error`` is an error of a class that submax defines. Of any other error ``failure`` is the
    description in one line, and ``details`` has the traceback for the log.
    """

    result: Any = None
    error: Error | None = None
    failure: str = ""
    details: str = ""
    warnings: tuple[tuple[str, type[Warning]], ...] = ()


class JobRunner:
    """Runs jobs one at a time in a process, which it starts for the first one and keeps.

    So a job needs no memory in this process, does not hold its lock of Python, and cannot end it
    by a crash. A process that has died is started again for the next job. It ends when there was no
    job for ``idle_seconds``, and with this process, even if this process is killed.
    """

    def __init__(self, idle_seconds: float = IDLE_SECONDS) -> None:
        self._idle_seconds = idle_seconds
        # One job at a time; the other lock guards what ``close`` uses during a job.
        self._running, self._lock = Lock(), Lock()
        self._worker: Worker | None = None
        self._closed = self._has_started = False
        atexit.register(self.close)

    @property
    def busy(self) -> bool:
        """Whether a job is running, so that another one would have to wait."""
        return self._running.locked()

    def run(
        self,
        function: Callable[Arguments, Result],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Result:
        """Return what a function of a module returns; wait for the job under way."""
        return self.run_within(None, function, *arguments, **named)

    def run_within(
        self,
        seconds: float | None,
        function: Callable[Arguments, Result],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Result:
        """As ``run``; a job that takes more than so many seconds is killed and is an error.

        If the process cannot be started, a ``NoProcessError`` is raised.
        """
        job = Job(function.__module__, function.__qualname__, arguments, named)
        with self._running:
            try:
                answer = self._answer(job, seconds)
            except BaseException:
                # The answer of a job that was interrupted must not become that of the next one.
                self._end()
                raise
        for text, category in answer.warnings:
            warnings.warn(text, category, stacklevel=2)
        if answer.error is not None:
            raise answer.error
        if answer.failure:
            LOG.error("%s failed in its process: %s", job.function, answer.details)
            raise JobError(answer.failure)
        return cast(Result, answer.result)

    def submit(
        self,
        seconds: float | None,
        function: Callable[Arguments, Result],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> "Future[Result]":
        """As ``run_within``, without waiting for the result."""
        future: Future[Result] = Future()
        future.set_running_or_notify_cancel()

        def wait() -> None:
            try:
                future.set_result(self.run_within(seconds, function, *arguments, **named))
            except BaseException as error:
                future.set_exception(error)

        # A daemon: the end of this process does not wait for a job.
        Thread(target=wait, name="submax-job", daemon=True).start()
        return future

    def close(self) -> None:
        """End the process at once, also during a job, and start no more."""
        with self._lock:
            self._closed = True
            if self._worker is not None:
                self._worker.kill()
        atexit.unregister(self.close)
        if self._running.acquire(timeout=ENDING_SECONDS):
            self._end()
            self._running.release()

    def _answer(self, job: Job, seconds: float | None) -> Answer:
        answer, status = self._ready().ask(job, seconds)
        while status == IDLE_STATUS:
            # It ended by itself before it got the job.
            answer, status = self._ready().ask(job, seconds)
        if answer is not None:
            return answer
        complaint = self._end()
        if self._closed:
            raise StoreError("the job was broken off or not begun, because the process stops")
        if status is None:
            raise JobError(f"{job.function} took more than {seconds:g} seconds and was stopped")
        LOG.error("the process of %s ended with status %s: %s", job.function, status, complaint)
        raise JobError(
            f"the process of {job.function} ended with status {status} "
            f"({complaint.strip()[-200:] or 'without a complaint'}), and the next job starts "
            "another: see that the machine has enough memory"
        )

    def _ready(self) -> "Worker":
        """The process; it is started if there is none, or if it has ended between two jobs."""
        if self._worker is None or self._worker.has_ended:
            self._end()
            return self._started()
        return self._worker

    def _started(self) -> "Worker":
        with self._lock:
            if self._closed:
                raise StoreError("no job can begin, because the process stops")
            try:
                worker = self._worker = Worker(self._idle_seconds)
            except OSError as error:
                raise self._not_started(str(error)) from error
        # Without the lock, so that ``close`` need not wait.
        if not worker.is_ready(START_SECONDS):
            complaint = self._end()
            raise self._not_started(complaint)
        self._has_started = True
        return worker

    def _not_started(self, complaint: str) -> Error:
        if self._closed:
            return StoreError("no job can begin, because the process stops")
        kind = JobError if self._has_started else NoProcessError
        return kind(
            f"the process for jobs did not start within {START_SECONDS:g} seconds "
            f"({complaint.strip()[-200:] or 'without a complaint'}): see that sys.executable is "
            "Python, and that the machine has memory for a second process"
        )

    def _end(self) -> str:
        """End the process; return what it wrote to standard error at last."""
        with self._lock:
            worker, self._worker = self._worker, None
        return "" if worker is None else worker.end()


class Worker:
    """The process, seen from the one that has started it."""

    def __init__(self, idle_seconds: float) -> None:
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - closed by ``end``
        folders = os.pathsep.join(folder or os.curdir for folder in sys.path)
        # One thread of linear algebra, unless the user wants more: the others are for decisions.
        environment = {**SINGLE_THREAD, **os.environ, "PYTHONPATH": folders}
        try:
            self._process = subprocess.Popen(
                # With -m alone, Python would look for modules in the current folder first.
                [sys.executable or "", "-P", "-m", "submax.bandit.jobs", repr(idle_seconds)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._complaints,
                env=environment,
            )
        except OSError:
            self._complaints.close()
            raise
        # Popen calls its pipes IO[bytes] | None: here are pipes, with the methods of BinaryIO.
        self._sends = cast(BinaryIO, self._process.stdin)
        self._receives = cast(BinaryIO, self._process.stdout)
        self._is_late = False

    def is_ready(self, seconds: float) -> bool:
        """Whether it has started within this time; if not, it is killed."""
        return self._within(seconds, lambda: self._receives.readline() == READY)

    def ask(self, job: Job, seconds: float | None) -> tuple[Answer | None, int | None]:
        """The answer to a job; if there is none, the exit status, None if it took too long."""
        try:
            return self._within(seconds, lambda: self._exchange(job)), 0
        except (OSError, EOFError, pickle.UnpicklingError):
            if self._is_late:
                return None, None
            with suppress(subprocess.TimeoutExpired):
                return None, self._process.wait(ENDING_SECONDS)
            self.kill()
            return None, self._process.wait()

    @property
    def has_ended(self) -> bool:
        """Whether the process is no longer running."""
        return self._process.poll() is not None

    def kill(self) -> None:
        """Kill the process; another thread may be waiting for its answer."""
        self._process.kill()

    def end(self) -> str:
        """Kill the process if it is running; return what it complained about."""
        self.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(ENDING_SECONDS)
        for stream in (self._sends, self._receives):
            with suppress(OSError):
                stream.close()
        with self._complaints as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - STDERR_TAIL_BYTES))
            return file.read().decode(errors="replace")

    def _exchange(self, job: Job) -> Answer:
        pickle.dump(job, self._sends, protocol=5)
        self._sends.flush()
        answer: Answer = pickle.load(self._receives)
        return answer

    def _within(self, seconds: float | None, function: Callable[[], Result]) -> Result:
        """Call a function that reads from the process, and kill the process if it is late."""
        if seconds is None:
            return function()
        late = Timer(seconds, self._kill_late)
        late.daemon = True
        late.start()
        try:
            return function()
        finally:
            late.cancel()

    def _kill_late(self) -> None:
        self._is_late = True
        self.kill()


def main(idle_seconds: float) -> None:
    """Run the jobs on standard input, one after the other, until it is closed."""
    try:
        _serve(idle_seconds)
    except BaseException:
        _complain()
    finally:
        # An ordinary end would abort, because the thread that reads holds standard input.
        os._exit(1)


def _serve(idle_seconds: float) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    # What anything else prints goes to standard error from now on.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    jobs: SimpleQueue[Job] = SimpleQueue()
    Thread(target=_read, args=(sys.stdin.buffer, jobs), daemon=True).start()
    answers.write(READY)
    answers.flush()
    while True:
        try:
            job = jobs.get(timeout=idle_seconds)
        except Empty:
            os._exit(IDLE_STATUS)
        answers.write(_answer_bytes(_answer(job)))
        answers.flush()


def _read(stream: BinaryIO, jobs: "SimpleQueue[Job]") -> None:
    """Read jobs; at the end of the stream, or at an error, end the process, also during a job."""
    try:
        while True:
            jobs.put(pickle.load(stream))
    except EOFError:
        pass
    except BaseException:
        _complain()
    finally:
        os._exit(1)


def _complain() -> None:
    """Write the error that is being handled to standard error, which the other process logs."""
    traceback.print_exc()
    sys.stderr.flush()


def _answer(job: Job) -> Answer:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            function: Any = importlib.import_module(job.module)
            for name in job.function.split("."):
                function = getattr(function, name)
            answer = Answer(function(*job.arguments, **job.named))
        except Exception as error:
            # The user's own file may define errors, which the other process cannot always make.
            if isinstance(error, Error) and _package(type(error)) == "submax":
                answer = Answer(error=error)
            else:
                answer = Answer(failure=one_line(error), details=traceback.format_exc())
    said = tuple((str(one.message), _known(one.category)) for one in caught)
    return answer._replace(warnings=said)


def _answer_bytes(answer: Answer) -> bytes:
    try:
        return pickle.dumps(answer, protocol=5)
    except Exception as error:
        return pickle.dumps(Answer(failure=one_line(error), details=traceback.format_exc()))


def _known(category: type[Warning]) -> type[Warning]:
    """Return a category that the other process knows; the user's own file may define others."""
    return category if _package(category) in ("builtins", "submax") else UserWarning


def _package(kind: type) -> str:
    """Return the name of the package that defines a class."""
    return kind.__module__.partition(".")[0]


if __name__ == "__main__":
    # By its own name, so that pickles of both processes mean the same classes.
    importlib.import_module("submax.bandit.jobs").main(float(sys.argv[1]))
