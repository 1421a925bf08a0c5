"""Linear algebra in one thread.

The cells of a sweep run in parallel processes, and a bandit is fitted while it decides. If every
small product of matrices also used all cores, threads would wait for one another: a sweep was ten
times slower with six threads, and a fit of 500 rows took 2 seconds in one thread, and 17 to 78 in
two while another program used the two cores. For a whole process, variables of the environment set
the number of threads before numpy is imported; ``ONE_THREAD`` does it for a block.
"""

import os
import sys
from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import Any, Self

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
