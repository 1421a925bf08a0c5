"""Runs the cells of an experiment, in processes or on a Dask cluster, and stores each result."""

import itertools
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from submax.core.checks import whole_number
from submax.core.errors import (
    InputError,
    MissingExtraError,
    counted_fallbacks,
    ignored_contexts_allowed,
    one_line,
)
from submax.core.optional import require_extra
from submax.core.processes import SINGLE_THREAD, end_with_parent
from submax.environments import ENVIRONMENTS
from submax.policies import make_policy
from submax.simulation import DELAYS
from submax.simulation.delays import BatchedRewards
from submax.simulation.experiment import (
    Cell,
    Specification,
    at_most,
    cells,
    digest_of,
    load_file,
    load_named,
    portable,
)
from submax.simulation.results import (
    CellStore,
    check_directory,
    claim_directory,
    close_directory,
    summarized,
    write_results,
)
from submax.simulation.simulate import Timed, ignores_context, simulate

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
def local_executor(jobs: int) -> Iterator[Executor]:
    """A pool of ``jobs`` single-threaded processes, which end when this process ends.

    On an error or an interruption no further task is started, and tasks that run are waited for.
    """
    whole_number("jobs", jobs, at_least=1)
    before = {name: os.environ.get(name) for name in WORKER}
    # Flags that the user has set are kept, before ours.
    given = [flag for flag in os.environ.get("XLA_FLAGS", "").split() if flag not in XLA_FLAGS]
    os.environ.update({**WORKER, "XLA_FLAGS": " ".join([*given, XLA_FLAGS])})
    # Spawned, not forked: a progress display has threads, and forking with threads can hang.
    context = multiprocessing.get_context("spawn")
    executor = ProcessPoolExecutor(jobs, mp_context=context, initializer=end_with_parent)
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


Task = TypeVar("Task")
Finished: TypeAlias = Callable[[str, Any], None]
"""Called with the key and the result of a cell after its result is stored."""


def sweep(
    tasks: Mapping[str, Task],
    run: Callable[[Task], Any],
    store: CellStore,
    executor: Executor,
    finished: Finished,
) -> None:
    """Run every task that has no result in the store yet.

    An error in one task, or an interruption, cancels the tasks that have not started; tasks that
    are running are waited for and their results stored.
    """
    missing = {key: task for key, task in tasks.items() if not store.finished(key)}
    futures = {executor.submit(run, task): key for key, task in missing.items()}
    try:
        for future in as_completed(futures):
            key = futures[future]
            result = future.result()
            store.write(key, result)
            finished(key, result)
    except BaseException:
        running = [future for future in futures if not future.cancel()]
        for future in as_completed(running):
            if future.exception() is None and not store.finished(futures[future]):
                store.write(futures[future], future.result())
        raise


def dry_run(cells: Iterable[Cell]) -> list[str]:
    """Let every policy take four decisions in every environment, to find errors before the sweep.

    Return the names of policies that do not look at the context of their environment.

    Policies from the user's own files are also updated twice. Policies of submax are not, because
    the training of a network would take too long.
    """
    ignoring: dict[str, None] = {}
    # Making an environment can mean reading a file, so it is made once for all its policies.
    for table, group in itertools.groupby(cells, key=lambda cell: cell.environment):
        environment = ENVIRONMENTS.build(table, {})
        observations = at_most(4, environment)
        for cell in {digest_of(cell.policy): cell for cell in group}.values():
            policy = make_policy(cell.policy)
            # Four decisions fill two batches of 2, but no batch of 5.
            delay = BatchedRewards(2 if portable(cell.policy) != cell.policy else 5)
            try:
                with ignored_contexts_allowed():
                    simulate(
                        environment, policy, observations=observations, replicas=2, delay=delay
                    )
            except (InputError, MissingExtraError):
                raise
            except Exception as error:
                raise InputError(
                    f"policy {cell.policy_name!r} failed in a test run in {environment}: "
                    f"{one_line(error)}; correct the policy, or leave it out of policies"
                ) from error
            if ignores_context(environment, policy):
                ignoring[cell.policy_name] = None
    return list(ignoring)


def run_cell(cell: Cell) -> dict[str, dict[str, Any]]:
    """Simulate one cell; all policies and delays of one environment meet the same worlds.

    The summary counts ``fallbacks``, decisions for which the policy fell back to a simpler rule,
    and wall-clock seconds: in total, deciding (``act``), training (``update``), and compiling
    networks by JAX, which is not counted as training.
    """
    begin, compiled = time.perf_counter(), _compiling_seconds()
    policy = Timed(make_policy(cell.policy))
    with counted_fallbacks() as fallbacks, ignored_contexts_allowed():
        trace = simulate(
            ENVIRONMENTS.build(cell.environment, {}),
            policy,
            observations=cell.observations,
            replicas=cell.replicas,
            delay=DELAYS.build(cell.delay, {}),
            seed=seed_of(cell),
            points=cell.points,
        )
    compiling = _compiling_seconds() - compiled
    return summarized(
        trace,
        fallbacks=sum(fallbacks),
        seconds=round(time.perf_counter() - begin, 4),
        deciding_seconds=round(policy.deciding, 4),
        training_seconds=round(policy.learning - compiling, 4),
        compiling_seconds=round(compiling, 4),
    )


def seed_of(cell: Cell) -> list[int]:
    """The seed of a cell, which is the same for all policies and delays of one environment."""
    return [cell.seed, int(digest_of(portable(cell.environment))[:16], 16)]


def _compiling_seconds() -> float:
    """The seconds that this process has spent on compiling networks; 0 if it trained none."""
    module = sys.modules.get("submax.models.nn.training")
    return 0.0 if module is None else float(module.compiling_seconds())


CELLS = "cells"
"""The folder of a result directory that has one file for each finished cell."""


def unfinished(directory: Path, chosen: Sequence[Cell]) -> list[Cell]:
    """The chosen cells that have no result in the directory yet."""
    store = CellStore(directory / CELLS)
    return [cell for cell in chosen if not store.finished(cell.key)]


def run_cells(
    specification: Specification,
    chosen: Sequence[Cell],
    directory: Path,
    executor: Executor,
    finished: Finished,
    run: Callable[[Cell], Any] = run_cell,
    write: Callable[[Path, Sequence[tuple[Cell, Any]]], None] = write_results,
) -> None:
    """Run the chosen cells, then write result files for all finished cells of the experiment."""
    begin, store = time.perf_counter(), CellStore(directory / CELLS)
    claim_directory(directory, specification)
    tasks = {cell.key: cell for cell in chosen}
    sweep(tasks, run, store, executor, finished)
    if store.keys() - tasks.keys():
        # The folder has further cells, which an earlier run may have selected.
        chosen = cells(specification)
    done = [cell for cell in chosen if store.finished(cell.key)]
    write(directory, [(cell, store.read(cell.key)) for cell in done])
    close_directory(directory, specification, time.perf_counter() - begin)


def run_study(
    experiment: Specification | Path | str,
    out: Path | str = "results",
    *,
    executor: Executor | None = None,
    replicas: int | None = None,
    seed: int | None = None,
    only: Iterable[str] = (),
    finished: Finished = lambda key, result: None,
) -> Path:
    """Run a sweep and return the folder with its results, ``out`` / the name of the experiment.

    ``experiment`` is a TOML file, the name of an experiment that comes with submax, or a
    `Specification`. ``executor`` is any executor of `concurrent.futures`, whose workers have submax
    installed; without one, cells are run one after the other in this process. Cells that are
    finished are not run again. ``only`` selects cells, such as ``["arms=100", "policy=ucb1"]``,
    so several jobs can share the work in one folder; a last call without it writes the result
    files from all cells. ``finished`` is called with the key and the result of each cell.
    """
    if not isinstance(experiment, Specification):
        is_file = isinstance(experiment, Path) or experiment.endswith(".toml")
        experiment = load_file(Path(experiment)) if is_file else load_named(str(experiment))
    specification = experiment.changed(replicas=replicas, seed=seed)
    if specification.experiment != "sweep":
        raise InputError(
            f"{specification.name} is not a sweep: run it with submax reproduce "
            f"{specification.name}"
        )
    chosen = cells(specification, only)
    directory = Path(out) / specification.name
    check_directory(directory, specification)
    dry_run(chosen)
    # One thread runs the cells here, because a sweep waits for the results of an executor.
    workers: AbstractContextManager[Executor] = (
        ThreadPoolExecutor(1) if executor is None else nullcontext(executor)
    )
    with workers as running:
        run_cells(specification, chosen, directory, running, finished)
    return directory
