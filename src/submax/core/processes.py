"""Threads and processes: linear algebra in one thread, background work, child processes."""

import atexit
import gc
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ContextDecorator, nullcontext
from functools import cache
from pathlib import Path
from threading import Condition, Lock, local
from time import perf_counter
from typing import Any, Self

from submax.core.errors import InputError


def end_with_parent() -> None:
    """Let the parent handle signals, and exit when the parent exits, even if it is killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_exit_after, args=(parent.sentinel,), daemon=True).start()


def _exit_after(sentinel: int) -> None:
    multiprocessing.connection.wait([sentinel])
    os._exit(1)


def end_without_collection() -> None:
    """Let Python end this process without looking for garbage among all of its objects.

    With the modules of the server this takes 0.1 seconds, a fifth of the whole time of a short
    command. The system takes the memory back in any case.
    """
    atexit.register(gc.freeze)


BY_FILE = "_FILE"
"""``SUBMAX_STORE_FILE`` names a file with the value of ``SUBMAX_STORE``, such as a secret of a
container."""
INVALID_VARIABLE = "invalid-variable"
"""The code of an error about an environment variable with a wrong value."""


def variable_text(name: str, environment: Mapping[str, str]) -> tuple[str, str | None]:
    """The variable that has a value, and its text: that of ``name``, or of a file that it names.

    An empty variable counts as absent, because it takes back one that a container file sets.

    >>> variable_text("SUBMAX_PORT", {"SUBMAX_PORT": "8000"})
    ('SUBMAX_PORT', '8000')
    >>> variable_text("SUBMAX_PORT", {"SUBMAX_PORT": ""})
    ('SUBMAX_PORT', None)
    """
    if text := environment.get(name):
        return name, text
    by_file = name + BY_FILE
    if file := environment.get(by_file):
        return by_file, _content(by_file, file) or None
    return name, None


def _content(variable: str, file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise InputError(
            f"the variable {variable} was {file!r:.80}, which cannot be read "
            f"({getattr(error, 'strerror', None) or error}), and a file with the value is allowed: "
            "name one, or unset the variable",
            code=INVALID_VARIABLE,
        ) from error


SINGLE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}


def prefer_single_thread() -> None:
    """Limit linear algebra of this process to one thread, unless the user has set the variables.

    This works only before numpy is imported.
    """
    for name, value in SINGLE_THREAD.items():
        os.environ.setdefault(name, value)


class OneThread:
    """A block in which linear algebra uses one thread: that of numpy, and of SciPy if imported.

    The limit holds for the whole process. Blocks may overlap in several threads; at the end of the
    last one, linear algebra uses as many threads as before the first. If a limit of somebody else
    begins during a block and ends after it, that one restores what it has found, one thread.
    Nothing happens if all libraries have one thread already, as in ``submax serve``.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forget all blocks: a forked process has none of the threads that are inside of them.

        If there was a block, linear algebra of the forked process goes on with one thread.
        """
        self._lock = Lock()
        self._entered = 0
        self._limited: list[BlasLibraries] = []

    def hold(self) -> None:
        """Let no block begin or end until ``release``, so that a fork leaves nothing locked."""
        self._lock.acquire()

    def release(self) -> None:
        """Let blocks begin and end again."""
        self._lock.release()

    def __enter__(self) -> None:
        with self._lock:
            # While SciPy is being imported, the module exists without its functions.
            has_scipy = hasattr(sys.modules.get("scipy.linalg"), "solve")
            libraries = BlasLibraries.loaded(has_scipy)
            # It is the first block, or SciPy was imported during one.
            if libraries not in self._limited:
                libraries.limit()
                self._limited.append(libraries)
            self._entered += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._entered -= 1
            # It is below 0 at the end of a block during which this process was forked.
            while self._limited and self._entered <= 0:
                self._limited.pop().restore()


class BlasLibraries:
    """The libraries of linear algebra whose number of threads can be set for the whole process.

    They are OpenBLAS with threads of its own, as in the wheels of numpy and SciPy for Linux. Other
    libraries, such as MKL, Accelerate and OpenBLAS with OpenMP, are left alone.
    """

    def __init__(self) -> None:
        import threadpoolctl

        found = threadpoolctl.ThreadpoolController().select(internal_api="openblas")
        self._controller = found.select(threading_layer="pthreads")
        self._limit: Any = None
        # Since version 3.8, only the thread that has set a limit may change it, until it lets go.
        let_go = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)
        self._let_go: Callable[[], None] = let_go or (lambda: None)

    @classmethod
    @cache
    def loaded(cls, has_scipy: bool) -> Self:
        """Return the libraries that are loaded.

        They are looked for once before and once after SciPy is imported, because it has a library
        of its own beside that of numpy.
        """
        return cls()

    def limit(self) -> None:
        """Let all of them use one thread, if any uses more."""
        if any((one.num_threads or 1) > 1 for one in self._controller.lib_controllers):
            self._limit = self._controller.limit(limits=1)
            self._let_go()

    def restore(self) -> None:
        """Let them use as many threads as before ``limit``."""
        limit, self._limit = self._limit, None
        if limit is not None:
            limit.restore_original_limits()
            self._let_go()


ONE_THREAD = OneThread()
"""The blocks of this process."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=ONE_THREAD.hold,
        after_in_parent=ONE_THREAD.release,
        after_in_child=ONE_THREAD.forget,
    )


TURN_SECONDS = 0.00002
"""How long a thread of Python computes before it lets another one run, while there is work in the
background: less than 50 microseconds, which is about the precision of the system's timers. A
decision waits for its turn several times, for example after it was written to the disk. With
Python's own turns of 5 milliseconds, a decision that takes 0.3 milliseconds would take 20 or more
during a fit."""
PAUSE_SECONDS = 0.001
"""How long background work waits for decisions at most: two to five decisions."""
STRETCH_SECONDS = 0.0002
"""How long background work goes on at least between two pauses. So it gets about a sixth of the
time, however many decisions there are, and a fit on a busy server takes up to six times as long."""
HALF_MICROSECOND = 5e-7
"""Added to what is set, because Python cuts off fractions of a microsecond: without it, turns would
become shorter by a microsecond whenever they are restored."""
NOTHING: AbstractContextManager[None] = nullcontext()


class BackgroundWork(ContextDecorator):
    """A block that computes while others decide, such as the fit of a version.

    Inside a block, ``give_way`` is called between two steps, and waits while a block of
    ``held_off`` is entered in another thread. While at least one block is entered, all threads of
    this process take short turns: this costs processor time only if threads compete. At the end of
    the last block turns are as long as before; whoever sets them shorter, or sets them during a
    block, is left alone.
    """

    def __init__(
        self,
        turn: float = TURN_SECONDS,
        pause: float = PAUSE_SECONDS,
        stretch: float = STRETCH_SECONDS,
    ) -> None:
        self._turn, self._pause, self._stretch = turn, pause, stretch
        self.forget()

    def forget(self) -> None:
        """Forget all blocks: a forked process has none of the threads that are inside of them."""
        self._lock = Lock()
        self._entered, self._before, self._set = 0, 0.0, 0.0
        self._urgent = UrgentWork()
        self._here = ThreadState()

    def __enter__(self) -> None:
        here = self._here
        if here.blocks == 0:
            here.resumed = perf_counter()
        here.blocks += 1
        with self._lock:
            self._entered += 1
            if self._entered == 1:
                self._before = sys.getswitchinterval()
                sys.setswitchinterval(min(self._turn, self._before) + HALF_MICROSECOND)
                self._set = sys.getswitchinterval()

    def __exit__(self, *_: object) -> None:
        self._here.blocks -= 1
        with self._lock:
            self._entered -= 1
            if self._entered == 0 and sys.getswitchinterval() == self._set:
                sys.setswitchinterval(self._before + HALF_MICROSECOND)

    def held_off(self) -> AbstractContextManager[None]:
        """Return a block that background work waits for, such as a decision.

        It may be entered in any thread and left in another one. It holds off nobody if there is no
        work in the background when this is called.
        """
        return self._urgent if self._entered else NOTHING

    @property
    def is_held_off(self) -> bool:
        """Whether anybody is in a block of ``held_off``."""
        return self._urgent.count > 0

    def give_way(self) -> None:
        """Wait while background work is held off, but not for long, and not too often.

        Nothing happens in a thread that is not inside a block. Locks that a decision needs must not
        be held by the caller.
        """
        if not self.is_held_off:
            return
        here = self._here
        if here.blocks and perf_counter() - here.resumed >= self._stretch:
            self._urgent.wait(self._pause)
            here.resumed = perf_counter()


class ThreadState(local):
    """How many blocks this thread has entered, and when it has last begun to compute."""

    blocks = 0
    resumed = 0.0


class UrgentWork(AbstractContextManager[None]):
    """A block that any number of threads can be in; ``count`` is how many there are."""

    def __init__(self) -> None:
        self.count = 0
        # A lock that its thread may take again: garbage that is collected while it is held may be a
        # decision that was given up, whose block ends then.
        self._changed = Condition()

    def __enter__(self) -> None:
        with self._changed:
            self.count += 1

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self.count -= 1
            if not self.count:
                self._changed.notify_all()

    def wait(self, seconds: float) -> None:
        """Wait until nobody is in a block, for so many seconds at most."""
        with self._changed:
            self._changed.wait_for(lambda: not self.count, seconds)


BACKGROUND = BackgroundWork()
"""The background work of this process."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=BACKGROUND.forget)
