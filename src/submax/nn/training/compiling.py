"""Compiling, once in a process."""

import functools
import threading
import time
from collections.abc import Callable
from typing import Any, TypeVar

import jax

Compiled = TypeVar("Compiled")

_compiling = threading.Lock()
_spent = [0.0]
_made = [0]


def compiled_once(make: Callable[..., Compiled]) -> Callable[..., Compiled]:
    """Remember what ``make`` compiled for its arguments, also when threads ask together."""

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
    """How long this process has spent on compiling for training."""
    return _spent[0]


def compilations() -> int:
    """How often something was compiled for training in this process."""
    return _made[0]


def shape(sizes: tuple[int, ...], kind: Any) -> Any:
    """An array that is not there yet, to compile for."""
    return jax.ShapeDtypeStruct(sizes, kind)  # type: ignore[no-untyped-call]  # untyped in JAX


def compiled(program: Callable[..., Any], *given: Any, overwrites: tuple[int, ...] = ()) -> Any:
    """The program for such arguments; those that it ``overwrites`` cannot be used again.

    On a CPU half the compile time goes into optimizations that these programs do not need.
    """
    lowered: Any = jax.jit(program, donate_argnums=overwrites).lower(*given)
    if jax.default_backend() == "cpu":
        return lowered.compile(compiler_options={"xla_backend_optimization_level": 1})
    return lowered.compile()
