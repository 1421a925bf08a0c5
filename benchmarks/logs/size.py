"""CPU seconds and peak memory of an evaluation in parts, from 10⁵ to 10⁷ rows of 10 actions.

    python benchmarks/logs/size.py                        # 1e5, 1e6, 1e7
    python benchmarks/logs/size.py --rows 1e8 --jobs 2    # 100 million rows, 2.6 GB on disk

The log is written by parts as Parquet files: an action, a reward, a propensity, a category and four
numbers of context. Each size is evaluated in a process of its own, by all estimators, for a policy
that learns from the first hundredth of the rows. Linear algebra has one thread, as in the command
`submax evaluate`: on busy cores its threads wait for each other, which took four times the CPU
seconds. CPU seconds are those of all processes together,
and the peak memory is that of the largest process times the number of processes. If other programs
use the cores, wall-clock seconds say little; those of free cores are at least the CPU seconds of
the main process, which learns and fits, and of the others divided by their number.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from measuring.claim import Claim, print_claims, print_table
from submax.core.processes import SINGLE_THREAD

ACTIONS, NUMBERS = 10, 4
FILE_ROWS = 1_000_000
"""Rows of a Parquet file."""
DISTINCT_FILES = 10
"""Further files are copies of the first ones: drawing 10⁸ rows would take longer than to evaluate
them, and the time and memory of an evaluation do not depend on whether rows occur twice."""
MOST_SECONDS, MOST_GIGABYTES = 60.0, 2.0
"""Goals for 10⁷ rows: wall-clock seconds of two cores, and memory for any number of rows."""
MEASURED = """
import json, resource, sys, time

from submax.evaluation import Log, compare


def used():
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return [one.ru_utime + one.ru_stime for one in both], [one.ru_maxrss for one in both]


if __name__ == "__main__":
    folder, policy, jobs = sys.argv[1], sys.argv[2], int(sys.argv[3])
    begin = time.perf_counter()
    log = Log.read(folder, on_disk=True, jobs=jobs)
    scanned = sum(used()[0])
    found = compare(log, {"policy": policy}, share=0.01)
    cpu, (own, child) = used()
    best = found.recommended()[1]
    print(json.dumps({
        "rows": len(log), "scan": scanned, "cpu": sum(cpu), "wall": time.perf_counter() - begin,
        "free": cpu[0] + cpu[1] / jobs,
        "memory": 1024 * (own + jobs * child if jobs > 1 else own), "value": best.value,
        "estimators": len(found.estimators()) - 1,
    }))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="1e5,1e6,1e7", help="numbers of rows")
    parser.add_argument("--policy", default="linucb@greedy")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    found = []
    for rows in given.rows.split(","):
        with tempfile.TemporaryDirectory() as folder:
            write_log(Path(folder), int(float(rows)))
            found.append(measured(folder, given.policy, given.jobs))
    cells = [
        (
            f"{one['rows']:,}",
            f"{one['scan']:.1f}",
            f"{one['cpu']:.1f}",
            f"{1e6 * one['cpu'] / one['rows']:.1f}",
            f"{one['free']:.0f}",
            f"{one['wall']:.0f}",
            f"{one['memory'] / 1e9:.2f}",
        )
        for one in found
    ]
    headings = (
        "rows",
        "reading, CPU s",
        "CPU s",
        "CPU s per 10⁶",
        "free cores",
        "wall s",
        "peak GB",
    )
    kinds = f"{found[0]['estimators']} estimators, {ACTIONS} actions, {given.policy}"
    print_table(f"Evaluation in parts: {kinds}, {given.jobs} processes", headings, cells)
    print_claims(claims(found))


def claims(found: list[dict[str, float]]) -> list[Claim]:
    """The goals: the time that cores need if they have nothing else to do, and the memory."""
    last, memory = found[-1], max(one["memory"] for one in found) / 1e9
    seconds = last["free"] * 1e7 / last["rows"]
    return [
        Claim(
            f"seconds of free cores, from {last['rows']:,} rows and for 10⁷ rows",
            f"{seconds:.0f}",
            f"at most {MOST_SECONDS:.0f}",
            seconds <= MOST_SECONDS,
        ),
        Claim("peak memory, GB", f"{memory:.2f}", "at most 2", memory <= MOST_GIGABYTES),
    ]


def measured(folder: str, policy: str, jobs: int) -> dict[str, float]:
    """What a process of its own needs to evaluate the log."""
    script = Path(folder).with_suffix(".py")
    script.write_text(MEASURED, encoding="utf-8")
    try:
        command = [sys.executable, str(script), folder, policy, str(jobs)]
        environment = {**SINGLE_THREAD, **os.environ}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    finally:
        script.unlink()
    return dict(json.loads(done.stdout.splitlines()[-1]))


def write_log(folder: Path, rows: int) -> None:
    """Write a log by parts; the expected reward depends on the action and on the first number."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(0)
    names, countries = np.array([f"a{one}" for one in range(ACTIONS)]), np.array(["fr", "de", "us"])
    for number, first in enumerate(range(0, rows, FILE_ROWS)):
        count, path = min(FILE_ROWS, rows - first), folder / f"part{number:04d}.parquet"
        if number >= DISTINCT_FILES and count == FILE_ROWS:
            shutil.copyfile(folder / f"part{number % DISTINCT_FILES:04d}.parquet", path)
            continue
        context = rng.normal(size=(count, NUMBERS)).astype(np.float32)
        chance = 0.8 * rng.dirichlet(np.full(ACTIONS, 3.0), size=count) + 0.2 / ACTIONS
        drawn = (chance.cumsum(axis=1) < rng.random((count, 1))).sum(axis=1)
        action = np.minimum(drawn, ACTIONS - 1)
        better = (action % 3 == 0) & (context[:, 0] > 0)
        table = pa.table(
            {
                "action": names[action],
                "reward": (rng.random(count) < 0.1 + 0.05 * better).astype(np.int64),
                "propensity": chance[np.arange(count), action],
                "context_country": countries[rng.integers(3, size=count)],
                **{f"context_x{one}": context[:, one] for one in range(NUMBERS)},
            }
        )
        parquet.write_table(table, path)


if __name__ == "__main__":
    main()
