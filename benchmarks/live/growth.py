"""How cost and memory of a live bandit change while its log grows from 10⁴ to 10⁷ decisions.

``python benchmarks/live/growth.py --rows 1e4,1e5,1e6 --out growth.csv`` measures every size and
policy and appends each number to the file as soon as it is known. The same command goes on where it
was interrupted. Every step runs in a process of its own, one at a time; with ``--jobs 4`` four at a
time, each on a copy of the log. The logs are kept in ``--folder``; one decision takes about 600
bytes there.

Processor time of the process that decides is measured, except for the time of a decision and of
opening, which include the waiting for the disk. Models of networks are trained in a process of
their own, whose processor time and memory are measures of their own.
"""

import argparse
import csv
import json
import os
import platform
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Lock
from typing import NamedTuple

# The folder of the benchmarks, if the script is run by itself.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring.claim import Claim, print_claims, print_table

STEP = Path(__file__).resolve().parents[1] / "load" / "growth_step.py"
FIELDS = ("log", "policy", "rows", "measure", "value", "machine")
WIDTHS = {"no context": 0, "20 numbers": 20}
"""The logs: names, and how many numbers the context has."""
POLICIES = {
    "no context": {"counting (default)": "rcp-adaptive"},
    "20 numbers": {
        "Bayesian features (default)": "rcp-adaptive",
        "linear (linucb)": "linucb",
        "network (softmax)": "rcp-softmax-submax",
    },
}
TRAINED = "network (softmax)"
"""The policy that trains a model on the last 100,000 rows."""
TRAINED_ROWS = 100_000
"""The network is measured up to this many rows; with more its training is given the same number."""
Step = tuple[str, str]
"""The name of a step, and the policy that it is measured with."""
SMALL = (10_000, 100_000)
"""The sizes that ``run.py`` measures, in some minutes."""
LIMITS = {
    "update_cpu_ms": (50.0, "most"),
    "memory_mb": (300.0, "most"),
    "longest_wait_for_lock_ms": (10.0, "most"),
    "read_events_per_s": (200_000.0, "least"),
    "export_rows_per_s": (100_000.0, "least"),
    "compacted_bytes_per_decision": (250.0, "most"),
}
"""The limit of each measure, for every size."""


class Cell(NamedTuple):
    """What was measured with one log, policy and number of rows."""

    log: str
    policy: str
    rows: int


WRITING = Lock()
"""Held while results are written, since steps that are run at once have the same file."""
Results = dict[Cell, dict[str, float]]


def main(words: Sequence[str] | None = None) -> int:
    """Measure all sizes, and print the claims."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="1e4,1e5,1e6", help="sizes of the log, with commas")
    parser.add_argument("--out", type=Path, default=Path("growth.csv"), help="file of the results")
    parser.add_argument("--folder", type=Path, help="folder of the logs; else a temporary one")
    parser.add_argument("--logs", nargs="+", choices=WIDTHS, default=list(WIDTHS))
    parser.add_argument(
        "--without", nargs="+", choices=can_be_left_out(), default=[], help="policies or steps"
    )
    parser.add_argument("--jobs", type=int, default=1, help="steps that are run at once")
    given = parser.parse_args(words)
    sizes = sorted(int(float(one)) for one in given.rows.split(","))
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        run(sizes, folder, given.out, given.logs, given.without, given.jobs)
    results = results_of(given.out)
    show(results)
    print_claims(claims(results))
    return 0


def measure() -> list[Claim]:
    """Measure the small sizes, and return the claims."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "growth.csv"
        run(SMALL, Path(folder), out, list(WIDTHS), [TRAINED])
        show(results_of(out))
        return claims(results_of(out))


def run(
    sizes: Sequence[int],
    folder: Path,
    out: Path,
    logs: Sequence[str],
    without: Sequence[str],
    jobs: int = 1,
) -> None:
    """Measure what the file does not have yet."""
    for log in logs:
        for rows in sizes:
            place = folder / log.replace(" ", "-")
            found = [
                [one for one in lane if not _left_out(one, without)] for lane in lanes(log, rows)
            ]
            run_lane(found[0], place, log, rows, out)
            run_lanes(found[1:], place, log, rows, out, jobs)


def _left_out(one: Step, without: Sequence[str]) -> bool:
    step, policy = one
    return step in without or (step == "update" and policy in without)


def can_be_left_out() -> list[str]:
    """The steps and the policies that ``--without`` may name."""
    steps = {step: None for log in POLICIES for lane in lanes(log, 0) for step, _ in lane}
    return [*steps, *(policy for policies in POLICIES.values() for policy in policies)]


def lanes(log: str, rows: int) -> list[list[Step]]:
    """The steps for one size: those of a lane need each other, different lanes only the first."""
    first, *others = [one for one in POLICIES[log] if one != TRAINED or rows <= TRAINED_ROWS]
    return [
        [("fill", first)],
        [("read", first), ("size", first), ("compact", first)],
        [("update", first), ("opening", first)],
        *[[("update", one)] for one in others],
        [("export", first)],
    ]


def run_lanes(
    found: Sequence[Sequence[Step]], folder: Path, log: str, rows: int, out: Path, jobs: int
) -> None:
    """Run lanes one after the other on the log, or at once, the first on it, others on copies."""
    if jobs == 1:
        for lane in found:
            run_lane(lane, folder, log, rows, out)
        return
    copies = [folder.with_name(f"{folder.name}-{number}") for number in range(1, len(found))]
    for copy in copies:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy)
    with ThreadPoolExecutor(jobs) as pool:
        work = partial(run_lane, log=log, rows=rows, out=out)
        list(pool.map(work, found, [folder, *copies]))
    for copy in copies:
        shutil.rmtree(copy)


def run_lane(lane: Sequence[Step], folder: Path, log: str, rows: int, out: Path) -> None:
    """Run the steps of a lane that the file does not have yet, one after the other."""
    for step, policy in lane:
        cell = Cell(log, policy if step == "update" else "", rows)
        if step in steps_done(out, cell):
            continue
        print(f"{log}, {rows} rows: {step} {policy}", flush=True)
        # The log must be as long as the step needs it, in another folder too.
        filled = run_step("fill", folder, log, cell)
        measured = filled if step == "fill" else run_step(step, folder, log, cell)
        write(out, cell, step, measured)


def run_step(step: str, folder: Path, log: str, cell: Cell) -> dict[str, float]:
    """Run a step in a process of its own; return what it measured."""
    policy = POLICIES[log][cell.policy or next(iter(POLICIES[log]))]
    words = [step, str(folder.resolve()), str(WIDTHS[log]), str(cell.rows), policy]
    # The folder stays the same, because paths in the environment may be relative.
    command = [sys.executable, str(STEP), *words]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def write(out: Path, cell: Cell, step: str, measured: dict[str, float]) -> None:
    """Append what a step measured, and that the step is done."""
    found = {**measured, f"step {step}": 1.0}
    rows = [(*cell, name, f"{value:.6g}", machine()) for name, value in found.items()]
    with WRITING, out.open("a", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows if file.tell() else [FIELDS, *rows])


def steps_done(out: Path, cell: Cell) -> set[str]:
    """The steps of a cell whose results are in the file."""
    found = results_of(out).get(cell, {}) if out.exists() else {}
    return {name.removeprefix("step ") for name in found if name.startswith("step ")}


def results_of(out: Path) -> Results:
    """What the file has; of a measure that it has twice, the last."""
    results: Results = {}
    with out.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            cell = Cell(row["log"], row["policy"], int(row["rows"]))
            results.setdefault(cell, {})[row["measure"]] = float(row["value"])
    return results


def machine() -> str:
    """The machine in words."""
    return (
        f"{os.cpu_count()} cores {platform.machine()}, {platform.system()}, Python "
        f"{platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    )


def claims(results: Results) -> list[Claim]:
    """The claims about the largest size of every log and policy."""
    found = []
    largest = {
        cell.log: max(one.rows for one in results if one.log == cell.log) for cell in results
    }
    for cell, measured in results.items():
        if cell.rows != largest[cell.log]:
            continue
        where = f"{cell.rows:.0e} rows, {cell.log}" + (f", {cell.policy}" if cell.policy else "")
        for name, (limit, side) in LIMITS.items():
            if name in measured:
                holds = measured[name] <= limit if side == "most" else measured[name] >= limit
                words = f"at {side} {limit:g}"
                found.append(Claim(f"{where}: {name}", f"{measured[name]:.4g}", words, holds))
        if "decide_p99_ms" in measured:
            ratio = measured["decide_p99_updating_ms"] / measured["decide_p99_ms"]
            what = f"{where}: decide p99 during an update / without"
            found.append(Claim(what, f"{ratio:.2f}", "at most 2", ratio <= 2))
    return found


def show(results: Results) -> None:
    """Print all numbers, one row for each measure of a log and policy."""
    sizes = sorted({cell.rows for cell in results})
    names: dict[tuple[str, str, str], None] = {}
    for cell, measured in results.items():
        for name in measured:
            if not name.startswith("step "):
                names[cell.log, cell.policy, name] = None
    rows = []
    for log, policy, name in names:
        values = [results.get(Cell(log, policy, size), {}).get(name) for size in sizes]
        cells = ["" if value is None else f"{value:,.4g}" for value in values]
        rows.append((f"{log}, {policy or 'the log'}: {name}", *cells))
    print_table("Growth", ("measure", *(f"{size:.0e}" for size in sizes)), rows)


if __name__ == "__main__":
    sys.exit(main())
