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
import traceback
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import partial
from queue import SimpleQueue
from threading import Event, Lock, Thread, Timer
from typing import Any, BinaryIO, NamedTuple, TypeVar, cast

from submax.core.errors import Error, StoreError, one_line
from submax.core.processes import SINGLE_THREAD, in_thread

LOG = logging.getLogger("submax")
START_SECONDS = 60.0
"""Startup takes about 1 s of CPU; allow for a busy machine."""
ENDING_SECONDS = 5.0
"""How long a process that was killed may take to end."""
NICENESS = 10
"""A low priority: if all cores are busy, decisions come before jobs."""
READY = b"submax-job\n"
"""What the process writes when it has started."""
Result = TypeVar("Result")


class JobError(Error, RuntimeError):
    """A job failed: its function raised an error, or its process has ended or took too long."""

    default_code = "job-failed"


class NoProcessError(JobError):
    """No second process can be started from this one."""


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
    by a crash. A process that has died is started again for the next job. It ends with this
    process, even if this one is killed.
    """

    def __init__(self) -> None:
        # One job at a time; the other lock guards what ``close`` uses during a job.
        self._running, self._lock = Lock(), Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = self._has_started = False
        atexit.register(self.close)

    @property
    def busy(self) -> bool:
        """Whether a job is running, so another one would have to wait."""
        return self._running.locked()

    def run(
        self, function: Callable[..., Result], *arguments: Any, seconds: float | None = None
    ) -> Result:
        """Return what a function of a module returns; wait for the job under way.

        A job that takes more than so many ``seconds`` is killed and is an error. If the process
        cannot be started, a ``NoProcessError`` is raised.
        """
        job = pickle.dumps((function, arguments))
        with self._running:
            try:
                answer = self._answer(function.__name__, job, seconds)
            except BaseException:
                # The answer of a job that was interrupted must not become that of the next one.
                self._end()
                raise
        for text, category in answer.warnings:
            warnings.warn(text, category, stacklevel=2)
        if answer.error is not None:
            raise answer.error
        if answer.failure:
            LOG.error("%s failed in its process: %s", function.__name__, answer.details)
            raise JobError(answer.failure)
        return cast(Result, answer.result)

    def submit(
        self, function: Callable[..., Result], *arguments: Any, seconds: float | None = None
    ) -> "Future[Result]":
        """As ``run``, without waiting for the result."""
        job = partial(self.run, function, *arguments, seconds=seconds)
        return in_thread(job, "submax-job")

    def close(self) -> None:
        """End the process at once, also during a job, and start no more."""
        with self._lock:
            self._closed = True
            if self._process is not None:
                self._process.kill()
        atexit.unregister(self.close)
        if self._running.acquire(timeout=ENDING_SECONDS):
            self._end()
            self._running.release()

    def _answer(self, name: str, job: bytes, seconds: float | None) -> Answer:
        process = self._ready()
        with (
            _killed_after(seconds, process) as late,
            suppress(OSError, EOFError, pickle.UnpicklingError),
        ):
            stream = cast(BinaryIO, process.stdin)
            pickle.dump(job, stream)
            stream.flush()
            answer: Answer = pickle.load(cast(BinaryIO, process.stdout))
            return answer
        status = self._end()
        if self._closed:
            raise StoreError("the job was cancelled because the process is stopping")
        if late.is_set():
            raise JobError(f"{name} took more than {seconds:g} seconds and was stopped")
        raise JobError(
            f"the process of {name} ended with status {status}: read what it wrote to standard "
            "error, and check that the machine has enough memory"
        )

    def _ready(self) -> "subprocess.Popen[bytes]":
        """The process; it is started if there is none, or if it has ended between two jobs."""
        if self._process is not None and self._process.poll() is None:
            return self._process
        self._end()
        ready = False
        with suppress(OSError):
            with self._lock:
                if not self._closed:
                    self._process = _started()
            # Without the lock, so ``close`` need not wait.
            if self._process is not None:
                with _killed_after(START_SECONDS, self._process):
                    ready = cast(BinaryIO, self._process.stdout).readline() == READY
        if ready and self._process is not None:
            self._has_started = True
            return self._process
        self._end()
        if self._closed:
            raise StoreError("no job can start because the process is stopping")
        raise (JobError if self._has_started else NoProcessError)(
            f"the process for jobs did not start within {START_SECONDS:g} seconds: see what it "
            "wrote to standard error, that sys.executable is Python, and that the machine has "
            "memory for a second process"
        )

    def _end(self) -> int | None:
        with self._lock:
            process, self._process = self._process, None
        if process is None:
            return None
        # After its pipes are closed, it has ended or is about to.
        for stream in (process.stdin, process.stdout):
            with suppress(OSError):
                cast(BinaryIO, stream).close()
        try:
            return process.wait(ENDING_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()


def _started() -> "subprocess.Popen[bytes]":
    folders = os.pathsep.join(folder or os.curdir for folder in sys.path)
    return subprocess.Popen(
        # With -m alone, Python would look for modules in the current folder first.
        [sys.executable or "", "-P", "-m", "submax.bandit.jobs"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # One thread of linear algebra, unless the user wants more: the others are for decisions.
        env={**SINGLE_THREAD, **os.environ, "PYTHONPATH": folders},
    )


@contextmanager
def _killed_after(seconds: float | None, process: "subprocess.Popen[bytes]") -> Iterator[Event]:
    """Kill a process if the block takes too long; the event that is yielded is set then."""
    late = Event()

    def kill() -> None:
        late.set()
        process.kill()

    timer = Timer(0.0 if seconds is None else seconds, kill)
    timer.daemon = True
    if seconds is not None:
        timer.start()
    try:
        yield late
    finally:
        timer.cancel()


# In the process


@contextmanager
def _process() -> Iterator[None]:
    """End the process with the block, also during a job, and print the error if there is one."""
    try:
        yield
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        # An ordinary end would abort, because the thread that reads holds standard input.
        os._exit(1)


@_process()
def main() -> None:
    """Run the jobs on standard input, one after the other, until it is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    # What anything else prints goes to standard error from now on.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    jobs: SimpleQueue[bytes] = SimpleQueue()
    Thread(target=_read, args=(sys.stdin.buffer, jobs), daemon=True).start()
    answers.write(READY)
    answers.flush()
    while True:
        answers.write(_answered(jobs.get()))
        answers.flush()


@_process()
def _read(stream: BinaryIO, jobs: "SimpleQueue[bytes]") -> None:
    with suppress(EOFError):
        while True:
            jobs.put(pickle.load(stream))


def _answered(job: bytes) -> bytes:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            function, arguments = pickle.loads(job)
            answer = Answer(function(*arguments))
        except Exception as error:
            # The user's own file may define errors, which the other process cannot always make.
            if isinstance(error, Error) and _package(type(error)) == "submax":
                answer = Answer(error=error)
            else:
                answer = Answer(failure=one_line(error), details=traceback.format_exc())
    said = tuple((str(one.message), _known(one.category)) for one in caught)
    try:
        return pickle.dumps(answer._replace(warnings=said))
    except Exception as error:
        return pickle.dumps(Answer(failure=one_line(error), details=traceback.format_exc()))


def _known(category: type[Warning]) -> type[Warning]:
    """The category, if the other process knows it; the user's own file may define others."""
    return category if _package(category) in ("builtins", "submax") else UserWarning


def _package(kind: type) -> str:
    return kind.__module__.partition(".")[0]


if __name__ == "__main__":
    # By its own name, so pickles of both processes mean the same classes.
    importlib.import_module("submax.bandit.jobs").main()
