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
from typing import Any, NamedTuple, TypeVar

import numpy as np

from submax.core.checks import whole_number
from submax.core.environment import Environment
from submax.core.errors import (
    InputError,
    MissingExtraError,
    counted_fallbacks,
    ignored_contexts_allowed,
    one_line,
)
from submax.core.numerics import standard_error
from submax.core.optional import require_extra
from submax.core.processes import SINGLE_THREAD, end_with_parent
from submax.simulation.delays import BatchedRewards
from submax.simulation.experiment import (
    Cell,
    Labels,
    Specification,
    at_most,
    cells,
    digest_of,
    load_file,
    load_named,
    make_delay,
    make_environment,
    policy_of,
    portable,
)
from submax.simulation.results import (
    CURVE_TABLE,
    CURVES,
    FINAL_TABLE,
    QUANTILES,
    ROWS,
    SUMMARY,
    CellFormat,
    CellResult,
    CellStore,
    Seconds,
    check_directory,
    claim_directory,
    close_directory,
    write_csv,
    write_table,
)
from submax.simulation.simulate import Timed, simulate


class Meter:
    """Counts decisions and updates over all replicas; every process of a pool adds to it."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._decisions: Any = context.Value("q", 0)
        self._updates: Any = context.Value("q", 0)

    @property
    def decisions(self) -> int:
        """The number of decisions taken so far."""
        return int(self._decisions.value)

    @property
    def updates(self) -> int:
        """How often so far feedback came back to a replica."""
        return int(self._updates.value)

    def add(self, decisions: int, updates: int) -> None:
        """Add to both counts; processes can call this at the same time."""
        for counter, more in ((self._decisions, decisions), (self._updates, updates)):
            with counter.get_lock():
                counter.value += more


_installed: list[Meter] = []


def install(meter: Meter | None) -> None:
    """Set the meter on which this process counts; None removes it."""
    _installed[:] = [] if meter is None else [meter]


def count(decisions: int, updates: int) -> None:
    """Add to the meter of this process, if one is installed."""
    for meter in _installed:
        meter.add(decisions, updates)


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


Task = TypeVar("Task")
Result = TypeVar("Result")


def sweep(
    tasks: Mapping[str, Task],
    run: Callable[[Task], Result],
    store: CellStore[Result],
    executor: Executor,
    finished: Callable[[str, Result], None],
) -> None:
    """Run every task that has no result in the store yet.

    ``finished`` is called with the key and the result after a result is stored. A sweep that was
    killed resumes where it stopped, because tasks with stored results are not run again. An error
    in one task, or an interruption, cancels the tasks that have not started; tasks that are
    running are waited for and their results stored.
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
        environment = make_environment(table)
        for cell in {digest_of(cell.policy): cell for cell in group}.values():
            _rehearse_policy(cell, environment)
            facts = policy_of(cell.policy).traits
            if environment.problem.context_width and facts.learns and not facts.uses_context:
                ignoring[cell.policy_name] = None
    return list(ignoring)


def _rehearse_policy(cell: Cell, environment: Environment[Any]) -> None:
    policy = policy_of(cell.policy)
    delay = BatchedRewards(2 if portable(cell.policy) != cell.policy else 5)
    observations = at_most(4, environment)
    try:
        with ignored_contexts_allowed():
            # Four decisions fill two batches of 2, but no batch of 5.
            simulate(environment, policy, observations=observations, replicas=2, delay=delay)
    except (InputError, MissingExtraError):
        raise
    except Exception as error:
        raise InputError(
            f"policy {cell.policy_name!r} failed in a trial run in {environment}: "
            f"{one_line(error)}; correct the policy, or leave it out of policies"
        ) from error


def run_cell(cell: Cell) -> CellResult:
    """Simulate one cell; all policies and delays of one environment meet the same worlds."""
    begin, compiled = time.perf_counter(), _compiling_seconds()
    policy = Timed(policy_of(cell.policy))
    with counted_fallbacks() as fallbacks, ignored_contexts_allowed():
        trace = simulate(
            make_environment(cell.environment),
            policy,
            observations=cell.observations,
            replicas=cell.replicas,
            delay=make_delay(cell.delay),
            seed=seed_of(cell),
            points=cell.points,
            progress=count,
        )
    compiling = _compiling_seconds() - compiled
    seconds = time.perf_counter() - begin
    training = policy.learning - compiling
    spent = Seconds(seconds, policy.deciding, training, compiling)
    return CellResult.of(trace, spent, sum(fallbacks))


def seed_of(cell: Cell) -> list[int]:
    """The seed of a cell, which is the same for all policies and delays of one environment."""
    return [cell.seed, int(digest_of(portable(cell.environment))[:16], 16)]


def _compiling_seconds() -> float:
    """The seconds that this process has spent on compiling networks; 0 if it trained none."""
    module = sys.modules.get("submax.models.nn.training")
    return 0.0 if module is None else float(module.compiling_seconds())


class FinishedCell(NamedTuple):
    """A cell and its result."""

    cell: Cell
    result: CellResult


def write_results(directory: Path, finished: Sequence[FinishedCell]) -> None:
    """Write the curves, the final values of all replicas, and one summary row for each cell."""
    # Environments of several kinds have different labels; delay stays the last one.
    names = dict.fromkeys(name for one in finished for name in one.cell.labels if name != "delay")
    columns: list[Labels] = [
        {
            **{name: cell.labels.get(name) for name in (*names, "delay")},
            "policy": cell.policy_name,
        }
        for cell, _ in finished
    ]
    for table, content in ((CURVE_TABLE, _curves), (FINAL_TABLE, _finals)):
        parts = [content(one.result) for one in finished]
        write_table(directory, table, [a | b for a, b in zip(columns, parts, strict=True)])
    summaries = [_summary(*one) for one in finished]
    write_csv(directory / SUMMARY, [a | b for a, b in zip(columns, summaries, strict=True)])


def _curves(result: CellResult) -> dict[str, Any]:
    columns: dict[str, Any] = {"step": result.steps}
    for measure in ("regret", "reward"):
        for name, values in getattr(result, measure)._asdict().items():
            columns[f"{measure}_{name}"] = values
    return columns


def _finals(result: CellResult) -> dict[str, Any]:
    return {
        "replica": np.arange(len(result.final_regret)),
        "regret": result.final_regret,
        "reward": result.final_reward,
        "late_slope": result.late_slope,
    }


def _summary(cell: Cell, result: CellResult) -> dict[str, Any]:
    final = result.final_regret
    low, high = np.quantile(final, QUANTILES)
    return {
        "replicas": len(final),
        "observations": cell.observations,
        "final_mean": float(final.mean()),
        "final_standard_error": standard_error(final),
        "final_q025": float(low),
        "final_q975": float(high),
        "final_reward_mean": float(result.final_reward.mean()),
        "final_reward_standard_error": standard_error(result.final_reward),
        "fallbacks": result.fallbacks,
        "seconds": round(result.seconds.all, 4),
        "deciding_seconds": round(result.seconds.deciding, 4),
        "training_seconds": round(result.seconds.training, 4),
        "compiling_seconds": round(result.seconds.compiling, 4),
    }


CELLS = "cells"
"""The folder of a result directory that has one file for each finished cell."""


def unfinished(specification: Specification, directory: Path, chosen: Sequence[Cell]) -> list[Cell]:
    """The chosen cells that have no result in the directory yet."""
    kind: CellFormat[Any] = ROWS if specification.experiment == "offline" else CURVES
    store = CellStore(directory / CELLS, kind)
    return [cell for cell in chosen if not store.finished(cell.key)]


def run_sweep(
    specification: Specification,
    chosen: Sequence[Cell],
    directory: Path,
    executor: Executor,
    finished: Callable[[str, CellResult], None],
    write_more: Callable[[Specification, Path], None] | None = None,
) -> None:
    """Run the chosen cells, then write result files for all finished cells of the experiment.

    ``write_more`` writes what else follows from the results, such as verdicts on claims.
    """
    begin = time.perf_counter()
    claim_directory(directory, specification)
    store = CellStore(directory / CELLS, CURVES)
    tasks = {cell.key: cell for cell in chosen}
    sweep(tasks, run_cell, store, executor, finished)
    if store.keys() - tasks.keys():
        # The folder has further cells, which an earlier run may have selected.
        chosen = cells(specification)
    done = [cell for cell in chosen if store.finished(cell.key)]
    write_results(directory, [FinishedCell(cell, store.read(cell.key)) for cell in done])
    if write_more is not None:
        write_more(specification, directory)
    seconds = round(time.perf_counter() - begin, 2)
    close_directory(directory, specification, seconds=seconds)


def run_study(
    experiment: Specification | Path | str,
    out: Path | str = "results",
    *,
    executor: Executor | None = None,
    replicas: int | None = None,
    seed: int | None = None,
    only: Iterable[str] = (),
    part: tuple[int, int] = (0, 1),
    finished: Callable[[str, Any], None] | None = None,
) -> Path:
    """Run a sweep and return the folder with its results, ``out`` / the name of the experiment.

    ``experiment`` is a TOML file, the name of an experiment that comes with submax, or a
    `Specification`. ``executor`` is any executor of `concurrent.futures`, whose workers have submax
    installed; without one, cells are run one after the other in this process. Cells that are
    finished are not run again. ``only`` selects cells, such as ``["arms=100", "policy=ucb1"]``.
    ``finished`` is called with the key and the result of each cell.

    ``part`` = (i, n) runs every n-th cell from the i-th on, so that n jobs share the work in one
    folder. Each job writes the result files from all cells that are finished when it ends; a
    further call without ``part`` writes them from all cells.
    """
    specification = _specification(experiment).changed(replicas=replicas, seed=seed)
    if specification.experiment != "sweep":
        raise InputError(
            f"{specification.name} is not a sweep: run it by the command submax reproduce "
            f"{specification.name}"
        )
    first, step = part
    whole_number("the number of parts", step, at_least=1)
    whole_number("part", first, at_least=0, at_most=step - 1)
    chosen = cells(specification, only)[first::step]
    directory = Path(out) / specification.name
    check_directory(directory, specification)
    dry_run(chosen)
    # One thread runs the cells here, because a sweep waits for the results of an executor.
    workers: AbstractContextManager[Executor] = (
        ThreadPoolExecutor(1) if executor is None else nullcontext(executor)
    )
    with workers as running:
        run_sweep(specification, chosen, directory, running, finished or (lambda key, result: None))
    return directory


def _specification(experiment: Specification | Path | str) -> Specification:
    if isinstance(experiment, Specification):
        return experiment
    if isinstance(experiment, Path) or str(experiment).endswith(".toml"):
        return load_file(Path(experiment))
    return load_named(experiment)
