"""The limit of BLAS threads while a regression is fitted."""

from collections.abc import Callable
from functools import cache, wraps
from threading import Lock
from typing import Any, ParamSpec, TypeVar

import scipy
import threadpoolctl

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")
_LOCK = Lock()
_ENTERED: list[Any] = []
"""The limit that the first of the present fits has set, and its repetition for each further one."""


@cache
def _blas() -> Any:
    """Return the BLAS libraries of numpy and SciPy; looking for them takes milliseconds."""
    assert scipy.linalg is not None, "SciPy brings a BLAS of its own"
    return threadpoolctl.ThreadpoolController().select(user_api="blas")


def _changed(how: Callable[[], None]) -> None:
    with _LOCK:
        how()
        # Since threadpoolctl 3.8 only one thread may change the limit, unless it lets go.
        let_go = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)
        if let_go is not None:
            let_go()


def _enter() -> None:
    _ENTERED.append(_ENTERED[0] if _ENTERED else _blas().limit(limits=1))


def _leave() -> None:
    limit = _ENTERED.pop()
    if not _ENTERED:
        limit.restore_original_limits()


def in_one_thread(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Run a function with one thread of BLAS, as scikit-learn does inside of its estimators.

    The matrices of a regression have a few hundred rows: with several threads each product waits
    for all cores, which takes ten times as long beside other busy programs. BLAS knows only a limit
    for the whole process, so the last of several fits that overlap restores it.
    """

    @wraps(function)
    def limited(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Returned:
        _changed(_enter)
        try:
            return function(*args, **kwargs)
        finally:
            _changed(_leave)

    return limited
