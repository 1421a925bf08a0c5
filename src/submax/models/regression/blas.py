"""The limit of BLAS threads while a regression is fitted."""

from collections.abc import Callable
from functools import cache, wraps
from threading import RLock
from typing import Any, ParamSpec, TypeVar

import scipy
import threadpoolctl

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")
_LOCK = RLock()


@cache
def _blas() -> Any:
    """Return the BLAS libraries of numpy and SciPy; looking for them takes milliseconds."""
    assert scipy.linalg is not None, "SciPy brings a BLAS of its own"
    return threadpoolctl.ThreadpoolController().select(user_api="blas")


def in_one_thread(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Run a function with one thread of BLAS, as scikit-learn does inside of its estimators.

    The matrices of a regression have a few hundred rows: with several threads each product waits
    for all cores, which takes ten times as long beside other busy programs. BLAS knows only a limit
    for the whole process, so fits take turns: the first to end would lift the limit of the others.
    """

    @wraps(function)
    def limited(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Returned:
        with _LOCK, _blas().limit(limits=1):
            return function(*args, **kwargs)

    return limited
