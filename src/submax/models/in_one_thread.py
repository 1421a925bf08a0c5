"""A decorator for functions whose linear algebra uses one thread."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from submax.core.running.single_thread import ONE_THREAD

Arguments = ParamSpec("Arguments")
Returned = TypeVar("Returned")


def in_one_thread(function: Callable[Arguments, Returned]) -> Callable[Arguments, Returned]:
    """Let the linear algebra of a function, also that of SciPy, use one thread."""

    @wraps(function)
    def limited(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Returned:
        # Imported only to load its library: a block limits what is loaded when it begins.
        import scipy.linalg  # noqa: F401 - see above

        with ONE_THREAD:
            return function(*args, **kwargs)

    return limited
