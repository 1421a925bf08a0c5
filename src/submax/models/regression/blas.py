"""The limit of BLAS threads while a regression is fitted."""

from collections.abc import Callable
from functools import cache, wraps
from threading import Lock
from typing import Any, ParamSpec, TypeVar

import scipy
import threadpoolctl

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")


class OneThread:
    """A block in which BLAS uses one thread, as scikit-learn limits it inside of its estimators.

    The matrices of a regression have a few hundred rows: with several threads each product waits
    for all cores, which takes ten times as long beside other busy programs. BLAS knows only a limit
    for the whole process, so the last of several blocks that overlap restores it.
    """

    def __init__(self) -> None:
        self._lock, self._entered = Lock(), 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._entered:
                self._limit = _blas().limit(limits=1)
                self._let_go()
            self._entered += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._entered -= 1
            if not self._entered:
                self._limit.restore_original_limits()
                self._let_go()

    @staticmethod
    def _let_go() -> None:
        """Let other threads change the limit: since threadpoolctl 3.8 only one may by default."""
        let_go = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)
        if let_go is not None:
            let_go()


@cache
def _blas() -> Any:
    """Return the BLAS libraries of numpy and SciPy; looking for them takes milliseconds."""
    assert scipy.linalg is not None, "SciPy brings a BLAS of its own"
    return threadpoolctl.ThreadpoolController().select(user_api="blas")


ONE_THREAD = OneThread()


def in_one_thread(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Run a function with one thread of BLAS; see ``OneThread``."""

    @wraps(function)
    def limited(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Returned:
        with ONE_THREAD:
            return function(*args, **kwargs)

    return limited
