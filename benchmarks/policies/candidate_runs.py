"""Runs of candidates in many processes, each written to a file when it is finished."""

import csv
import dataclasses
import io
import multiprocessing
import os
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

SEED = 7
"""Seed of the worlds; the reported experiments have seed 2024."""
BATCH = 1000
COLUMNS = ("method", "parameters", "score", "regrets", "rewards")
QUICK_COMPILING = "--xla_gpu_autotune_level=0 --xla_gpu_enable_triton_gemm=false"
"""Flags of XLA without which a GPU tries many forms of each matrix product before it begins. Every
candidate has programs of its own, and these trials took longer than the training."""
DRAWS = {"autoregressive": 10_000, "advantage-conditioned": 3_000}
"""Work of the draws of methods with slow decisions, in training steps of one update: the first
evaluates its network for every slot of a proposal, the second at eight levels."""
WORKER = {
    # Several processes share the memory of a GPU, and each has one thread for numpy.
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": f"{QUICK_COMPILING} --xla_cpu_multi_thread_eigen=false",
}


class Candidate(NamedTuple):
    """A method, its ``parameters`` in one line, and the ``table`` of the policy."""

    method: str
    parameters: str
    table: dict[str, Any]


class Outcome(NamedTuple):
    """Candidates without a result: those that ``failed``, and those ``left`` by a time limit."""

    failed: list[Candidate]
    left: list[Candidate]


def run(
    table: dict[str, Any],
    environment: dict[str, Any],
    replicas: int,
    observations: int,
    folder: Path,
) -> tuple[float, float]:
    """Return the mean final regret and reward of one candidate in one environment.

    What all candidates need is stored in ``folder``.
    """
    from recalled_best import recalling

    from submax.simulation.experiment import make_environment

    met = recalling(make_environment(environment), folder)
    trace = simulated(table, met, replicas, observations)
    return float(trace.final_regret.mean()), float(trace.final_reward.mean())


def store_best(
    environment: dict[str, Any], replicas: int, observations: int, folder: Path, block: int
) -> None:
    """Store the best rewards of joint choices in one block of decisions."""
    from recalled_best import BestOfBlock, recalling

    from submax.simulation.experiment import make_environment

    met = recalling(make_environment(environment), folder)
    one = BestOfBlock(**dataclasses.asdict(met), block=block)
    # Contexts do not depend on the policy.
    simulated({"kind": "random"}, one, replicas, observations)


def simulated(table: dict[str, Any], environment: Any, replicas: int, observations: int) -> Any:
    """Return the trace of a policy, with the seed and the delay of all candidates."""
    from submax.simulation.delays import BatchedRewards
    from submax.simulation.experiment import policy_of
    from submax.simulation.simulate import simulate

    return simulate(
        environment,
        policy_of(table),
        observations=observations,
        replicas=replicas,
        delay=BatchedRewards(BATCH),
        seed=SEED,
    )


def tune(
    made: list[Candidate],
    environments: list[dict[str, Any]],
    sizes: tuple[int, int],
    workers: int,
    out: Path,
    minutes: float | None = None,
) -> Outcome:
    """Run the candidates that are not in the file ``out`` yet; ``sizes`` are those of `run`.

    A row is written when its candidate is finished, so that a call that is stopped loses only what
    was running. After ``minutes`` the call stops itself. If a candidate fails, the others go on.
    In the end the rows are in the order of the candidates; rows of other candidates follow.
    """
    for name, value in WORKER.items():
        os.environ.setdefault(name, value)
    end = None if minutes is None else time.monotonic() + 60 * minutes
    known = rows_of(out)
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    write_rows(out, known.values())
    with (
        tempfile.TemporaryDirectory() as folder,
        ProcessPoolExecutor(workers, context) as pool,
    ):
        new = [one for one in sorted(made, key=most_work_first) if one[:2] not in known]
        submit_best(pool, environments if new else [], sizes, Path(folder))
        futures = {
            pool.submit(run_all, one.table, environments, *sizes, Path(folder)): one for one in new
        }
        base = known.get(("random", ""), {}).get("regrets")
        lowest = list(map(float, base.split())) if base else next(iter(futures)).result()[0]
        failed = finish(futures, lowest, out, known, end)
        if not all(future.done() for future in futures):
            # The time is up. The pool would wait for the candidates that are running.
            pool.shutdown(wait=False, cancel_futures=True)
            for process in set(multiprocessing.active_children()) - others:
                process.terminate()
    order = [one[:2] for one in made if one[:2] in known]
    write_rows(out, [known[one] for one in dict.fromkeys((*order, *known))])
    left = [one for one in made if one[:2] not in known and one not in failed]
    return Outcome(failed, left)


def submit_best(
    pool: ProcessPoolExecutor,
    environments: list[dict[str, Any]],
    sizes: tuple[int, int],
    folder: Path,
) -> None:
    """Let the processes store the best rewards of joint choices, each of them some blocks.

    Otherwise all candidates that start together would compute the rewards of all blocks.
    """
    for environment in environments:
        if environment["kind"] == "combinatorial":
            for block in range(-(-sizes[1] // BATCH)):
                pool.submit(store_best, environment, *sizes, folder, block)


def finish(
    futures: dict[Future[Any], Candidate],
    lowest: list[float],
    out: Path,
    known: dict[tuple[str, str], dict[str, str]],
    end: float | None,
) -> list[Candidate]:
    """Write the row of every candidate that is finished until ``end``, and return those that fail.

    The rows are appended to the file ``out``, and added to ``known``.
    """
    failed: list[Candidate] = []
    with out.open("a", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        try:
            for future in as_completed(futures, None if end is None else end - time.monotonic()):
                if future.exception() is not None:
                    failed.append(futures[future])
                    print("FAILED", *futures[future][:2], future.exception(), sep="  ", flush=True)
                    continue
                row = row_of(futures[future], *future.result(), lowest)
                known[row["method"], row["parameters"]] = row
                writer.writerow(row)
                file.flush()
                print(*row.values(), sep="  ", flush=True)
        except TimeoutError:
            print("the time is up", flush=True)
    return failed


def write_rows(out: Path, rows: Iterable[dict[str, str]]) -> None:
    """Replace the file by one with these rows; a call that is stopped here loses none."""
    from submax.core.serialization import atomic_write

    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    with atomic_write(out) as file:
        file.write(text.getvalue().encode())


def run_all(
    table: dict[str, Any], environments: list[dict[str, Any]], *sizes: Any
) -> tuple[list[float], list[float]]:
    """Return the mean final regrets and rewards of one candidate in all environments."""
    ends = [run(table, environment, *sizes) for environment in environments]
    return [end[0] for end in ends], [end[1] for end in ends]


def most_work_first(candidate: Candidate) -> float:
    """Return a key by which random choice comes first, and then the longest trainings."""
    if candidate.method == "random":
        return -np.inf
    known = dict(map(str.split, candidate.parameters.split(", ")))
    hidden = float(known.get("hidden", 0))
    draws = sum(work for name, work in DRAWS.items() if name in candidate.method)
    return -float(known.get("steps", 0)) * (100 + hidden) - draws * hidden


def row_of(
    candidate: Candidate, regrets: list[float], rewards: list[float], lowest: list[float]
) -> dict[str, str]:
    """Return the row of a candidate; ``lowest`` are the regrets of random choice."""
    score = float(np.mean([end / low for end, low in zip(regrets, lowest, strict=True)]))
    texts = (" ".join(f"{end:.1f}" for end in ends) for ends in (regrets, rewards))
    return dict(zip(COLUMNS, (*candidate[:2], f"{score:.3f}", *texts), strict=True))


def rows_of(file: Path) -> dict[tuple[str, str], dict[str, str]]:
    """Return the rows of an earlier call, by method and parameters."""
    if not file.exists():
        return {}
    with file.open(encoding="utf-8", newline="") as opened:
        rows = csv.DictReader(opened)
        return {(row["method"], row["parameters"]): row for row in rows if row["rewards"]}
