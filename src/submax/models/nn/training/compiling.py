"""Compilation of JAX programs, once per process."""

import functools
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import jax

Compiled = TypeVar("Compiled")

CPU_LEVEL = 1
"""How much XLA optimizes a program for the CPU, from 0 to 3. Above 1, half of the compile time goes
into optimizations that do not make these programs faster; at 0, long trainings take half as long
again."""

_compiling = threading.Lock()
_spent = [0.0]
_made = [0]


def compiled_once(make: Callable[..., Compiled]) -> Callable[..., Compiled]:
    """Return ``make`` with a cache of its results that is safe for concurrent threads."""

    @functools.cache
    def first_time(*given: Any) -> Compiled:
        _made[0] += 1
        return make(*given)

    def every_time(*given: Any) -> Compiled:
        with _compiling:
            begin = time.perf_counter()
            found = first_time(*given)
            _spent[0] += time.perf_counter() - begin
            return found

    return every_time


def compiling_seconds() -> float:
    """Return the seconds that this process has spent on compilation."""
    return _spent[0]


def compilations() -> int:
    """Return the number of compilations in this process."""
    return _made[0]


def shape(sizes: tuple[int, ...], kind: Any) -> Any:
    """Return the shape and dtype of an argument, for which a program can be compiled."""
    return jax.ShapeDtypeStruct(sizes, kind)  # type: ignore[no-untyped-call]  # untyped in JAX


def compiled(program: Callable[..., Any], *given: Any, overwrites: tuple[int, ...] = ()) -> Any:
    """Compile a program for these arguments; a call uses up the arguments in ``overwrites``.

    On a CPU the level of optimization is reduced to CPU_LEVEL.
    """
    lowered: Any = jax.jit(program, donate_argnums=overwrites).lower(*given)
    if jax.default_backend() == "cpu":
        return lowered.compile(compiler_options={"xla_backend_optimization_level": CPU_LEVEL})
    return lowered.compile()
