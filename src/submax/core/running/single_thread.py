"""Linear algebra in one thread.

The matrices of policies have some hundred rows. Several threads gain nothing for them, and have to
wait for one another at every product: a fit of 500 rows took 2 seconds in one thread, and 17 to 78
in two while another program used the two cores. For a whole process, variables of the environment
set the number of threads before numpy is imported; ``ONE_THREAD`` does it for a block.
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
    """Limit this process to one thread, unless the user has set the variables.

    This works only before numpy is imported.
    """
    for name, value in SINGLE_THREAD.items():
        os.environ.setdefault(name, value)


class OneThread:
    """A block in which linear algebra uses one thread: that of numpy, and of SciPy if loaded.

    The limit holds for the whole process. Blocks may overlap in several threads; at the end of the
    last one, linear algebra uses as many threads as before the first. Nothing happens in a process
    whose libraries have one thread when the first block begins, such as that of ``submax serve``.
    """

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forget all blocks: a forked process has none of the threads that are inside of them."""
        self._lock = Lock()
        self._entered = 0
        self._libraries: BlasLibraries | None = None

    def __enter__(self) -> None:
        with self._lock:
            if self._entered == 0:
                self._libraries = BlasLibraries.loaded("scipy.linalg" in sys.modules)
                self._libraries.limit()
            self._entered += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._entered -= 1
            if self._entered == 0 and self._libraries is not None:
                self._libraries.restore()


class BlasLibraries:
    """The libraries of linear algebra whose number of threads is that of the whole process.

    They are those of the wheels of numpy and SciPy. Other builds, whose number of threads is that
    of one thread of Python, are left alone.
    """

    def __init__(self) -> None:
        import threadpoolctl

        found = threadpoolctl.ThreadpoolController().select(threading_layer="pthreads")
        self._controller = found if any(one["num_threads"] > 1 for one in found.info()) else None
        self._limit: Any = None
        # Since version 3.8, only the thread that has set a limit may change it, until it lets go.
        let_go = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)
        self._let_go: Callable[[], None] = let_go or (lambda: None)

    @classmethod
    @cache
    def loaded(cls, has_scipy: bool) -> Self:
        """Return the libraries that are loaded; SciPy has one beside that of numpy."""
        return cls()

    def limit(self) -> None:
        """Let all of them use one thread."""
        if self._controller is not None:
            self._limit = self._controller.limit(limits=1)
            self._let_go()

    def restore(self) -> None:
        """Let them use as many threads as before ``limit``."""
        if self._limit is not None:
            self._limit.restore_original_limits()
            self._let_go()


ONE_THREAD = OneThread()
"""The blocks of this process."""
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=ONE_THREAD.forget)
