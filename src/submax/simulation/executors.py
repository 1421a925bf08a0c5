"""Executors that run the cells of a sweep: local processes, or a Dask cluster."""

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any

from submax.core.checks import whole_number
from submax.core.errors import InputError
from submax.core.running.extras import require_extra
from submax.core.running.parent import end_with_parent
from submax.core.running.single_thread import SINGLE_THREAD
from submax.simulation.meter import Meter, install

XLA_FLAGS = SINGLE_THREAD["XLA_FLAGS"]
WORKER = {**SINGLE_THREAD, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
"""Environment variables of a worker process: one thread each, and no preallocation of GPU memory,
because several workers can share one GPU."""


def available_cores() -> int:
    """The number of CPU cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def local_executor(jobs: int, meter: Meter | None = None) -> Iterator[Executor]:
    """A pool of ``jobs`` single-threaded processes, which end when this process ends.

    On an error or an interruption no further task is started, and tasks that run are waited for.
    The workers count their decisions and updates on the ``meter``.
    """
    whole_number("jobs", jobs, at_least=1)
    before = {name: os.environ.get(name) for name in WORKER}
    # Flags that the user has set are kept, before ours.
    given = [flag for flag in os.environ.get("XLA_FLAGS", "").split() if flag not in XLA_FLAGS]
    os.environ.update({**WORKER, "XLA_FLAGS": " ".join([*given, XLA_FLAGS])})
    # Spawned, not forked: a progress display has threads, and forking with threads can hang.
    context = multiprocessing.get_context("spawn")
    executor = ProcessPoolExecutor(
        jobs, mp_context=context, initializer=_begin_worker, initargs=(meter,)
    )
    try:
        yield executor
        executor.shutdown()
    except BaseException:
        # Killing a worker that is sending its result would leave the pool waiting for the rest.
        executor.shutdown(cancel_futures=True)
        raise
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def dask_executor(address: str) -> Iterator[Executor]:
    """The workers of a Dask scheduler; they need submax installed in the same version."""
    require_extra("dask", "a Dask cluster", "distributed")
    from distributed import Client

    try:
        client: Any = Client(address, timeout="10s")  # type: ignore[no-untyped-call]  # untyped
    except (OSError, ValueError) as error:
        raise InputError(
            f"no Dask scheduler answers at {address!r}; start one with 'dask scheduler' and give "
            "its address, such as tcp://127.0.0.1:8786"
        ) from error
    with client:
        executor = client.get_executor()
        try:
            yield executor
        finally:
            executor.shutdown(wait=False)


def _begin_worker(meter: Meter | None) -> None:
    install(meter)
    end_with_parent()
