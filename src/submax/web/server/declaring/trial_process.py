"""A process in which declarations are tried, and which is killed if a trial takes too long."""

import multiprocessing
import os
import warnings
from collections.abc import Mapping
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from threading import Lock, Timer
from typing import Any

from submax.core.errors import Error, InputError, StoreError
from submax.core.processes import end_with_parent
from submax.web.server.declaring.trial import ROWS, try_declaration

TRIAL_SECONDS = 60.0
"""How long a trial may take. The policy of this package that takes longest, ``rcp-cvae-submax``,
needs 22 seconds of a slow core, most of them to compile its training; a core may be shared."""
START_SECONDS = 60.0
"""How long the process may take to start; a few seconds of a slow core."""
IDLE_SECONDS = 60.0
"""After how long a process without a trial ends, to free its memory."""
MEMORY_BYTES = 8 * 2**30
"""The address space of the process, most of which is not in use: libraries reserve a lot."""
STOPPED = "the server stops, so that the declaration was not tried: send it again"


class TrialProcess:
    """Tries declarations one after the other, in a process that can be killed.

    A thread could not be ended if a policy computes for ever. The process is started for the first
    trial and kept for the next ones.
    """

    start_method = "spawn"
    """How the process is started: not by a fork of this process, which has threads."""

    def __init__(self, seconds: float = TRIAL_SECONDS) -> None:
        self._seconds, self._closed = seconds, False
        self._lock = Lock()
        self._process: BaseProcess | None = None
        self._connection: Connection | None = None
        self._idle: Timer | None = None

    def check(self, name: str, declaration: Mapping[str, Any]) -> None:
        """Raise an ``InputError`` if a bandit of this declaration cannot decide and learn soon."""
        with self._lock:
            if self._closed:
                raise StoreError(STOPPED)
            try:
                found = self._answer(name, dict(declaration))
            except (EOFError, OSError) as error:
                self._end()
                raise self._broken() from error
            self._end_later()
        if found is not None:
            raise found

    def close(self) -> None:
        """End the process, also during a trial; later trials are refused."""
        self._closed = True
        if self._idle is not None:
            self._idle.cancel()
        if self._process is not None:
            self._process.kill()

    def _answer(self, name: str, declaration: dict[str, Any]) -> Error | None:
        connection = self._connected()
        connection.send((name, declaration))
        if connection.poll(self._seconds):
            found: Error | None = connection.recv()
            return found
        self._end()
        return InputError(
            f"deciding and learning from {ROWS} made-up rows took longer than the "
            f"{self._seconds:g} seconds that are allowed: declare a policy with smaller "
            "parameters, or fewer actions and context fields"
        )

    def _broken(self) -> Error:
        if self._closed:
            return StoreError(STOPPED)
        return InputError(
            "the process in which the declaration was tried has ended, as it does if it needs more "
            f"memory than the {MEMORY_BYTES / 2**30:g} GiB that are allowed: declare a policy with "
            "smaller parameters, or fewer actions and context fields"
        )

    def _connected(self) -> Connection:
        if self._idle is not None:
            self._idle.cancel()
        if self._connection is None:
            context: Any = multiprocessing.get_context(self.start_method)
            self._connection, far = context.Pipe()
            self._process = context.Process(
                target=run_trials, args=(far,), name="submax-trial", daemon=True
            )
            self._process.start()
            far.close()
            self._wait_until_ready(self._connection)
        return self._connection

    def _wait_until_ready(self, connection: Connection) -> None:
        """Wait for a process that was just started, whose start is no part of a trial."""
        if not connection.poll(START_SECONDS):
            self._end()
            raise StoreError(
                f"the process that tries declarations did not start within {START_SECONDS:g} "
                "seconds, because the machine is too busy: try again later"
            )
        connection.recv()

    def _end_later(self) -> None:
        self._idle = Timer(IDLE_SECONDS, self._end_if_idle)
        self._idle.daemon = True
        self._idle.start()

    def _end_if_idle(self) -> None:
        if self._lock.acquire(blocking=False):
            try:
                self._end()
            finally:
                self._lock.release()

    def _end(self) -> None:
        """Kill the process; the next trial starts another one."""
        process, connection = self._process, self._connection
        self._process = self._connection = None
        if process is not None and connection is not None:
            process.kill()
            process.join()
            connection.close()


def run_trials(connection: Connection) -> None:
    """Try each declaration that comes, and send back None or the error."""
    end_with_parent()
    _limit_memory()
    # A GPU would reserve more addresses than the limit, and its memory belongs to the server.
    os.environ["JAX_PLATFORMS"] = "cpu"
    warnings.simplefilter("ignore")
    _import_slow_modules()
    connection.send("ready")
    while True:
        try:
            name, declaration = connection.recv()
        except EOFError:
            return
        try:
            try_declaration(name, declaration)
        except Error as error:
            connection.send(error)
        else:
            connection.send(None)


def _import_slow_modules() -> None:
    """Import what most policies import when they first decide, so that no trial waits for it."""
    import scipy.linalg
    import scipy.sparse
    import scipy.special  # noqa: F401 - policies use it when they first decide


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(hard, MEMORY_BYTES)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
