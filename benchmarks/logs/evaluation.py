"""Off-policy estimates of logs of any size.

    python benchmarks/logs/evaluation.py --rows 1e6,1e7,1e8

The logs of ``--rows`` are Parquet files of 10 actions, a category and four numbers of context. Each
is evaluated in parts, in a process of its own, by all estimators, for a policy that learns from the
first hundredth of the rows. CPU seconds are those of all threads together. If other programs use
the cores, wall-clock seconds say little; those of free cores are at least the CPU seconds of
reading, and of evaluating divided by the number of threads.
"""

import argparse
import shutil
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

# The folder of the benchmarks, if the script is run by itself.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import Claim, alone, at_most, peak_memory, print_claims, print_table
from submax.core.numerics import draw
from submax.evaluation import Log, compare
from submax.simulation.runner import available_cores

ACTIONS, NUMBERS, FILE_ROWS = 10, 4, 1_000_000
DISTINCT_FILES = 10
"""Further files are copies of the first ones: drawing 10⁸ rows would take longer than to evaluate
them, and the time and memory of an evaluation do not depend on whether rows occur twice."""
MOST_SECONDS, MOST_GIGABYTES = 60.0, 2.0
"""For 10⁷ rows: seconds of free cores, and memory for any number of rows."""
SPENT = {"scan": "reading, CPU s", "cpu": "CPU s", "free": "free cores, s", "wall": "wall s"}


def measure(sizes: tuple[float, ...] = (1e6, 1e7), policy: str = "linucb@greedy") -> list[Claim]:
    """Evaluate logs of growing size, each in a process of its own; print all times."""
    found = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            write_log(Path(folder), int(size))
            found.append(alone(evaluated, folder, policy))
    rows = [
        (f"{one['rows']:,}", *(f"{one[name]:.1f}" for name in SPENT), f"{one['gigabytes']:.2f}")
        for one in found
    ]
    title = f"Evaluation in parts, {policy}, {available_cores()} threads"
    print_table(title, ("rows", *SPENT.values(), "peak GB"), rows)
    last = found[-1]
    what = f"10⁷ rows, computed from {last['rows']:,}, free cores"
    memory = max(one["gigabytes"] for one in found)
    return [
        at_most(what, last["free"] * 1e7 / last["rows"], MOST_SECONDS, "s"),
        at_most("the same, peak memory of any size", memory, MOST_GIGABYTES, "GB"),
    ]


def evaluated(folder: str, policy: str) -> dict[str, float]:
    """Evaluate a log on disk, and return what it took of time and memory."""
    before, begin = time.process_time(), time.perf_counter()
    log = Log.read(folder)
    scanned = time.process_time() - before
    compare(log, {"policy": policy}, share=0.01)
    cpu = time.process_time() - before
    free, wall = scanned + (cpu - scanned) / available_cores(), time.perf_counter() - begin
    spent = dict(zip(SPENT, (scanned, cpu, free, wall), strict=True))
    return {"rows": len(log), **spent, "gigabytes": 1024**2 / 1e9 * peak_memory()}


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
        action = draw(chance[None], count, rng)[0]
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", default="1e6,1e7", help="numbers of rows")
    parser.add_argument("--policy", default="linucb@greedy")
    given = parser.parse_args()
    sizes = tuple(float(size) for size in given.rows.split(","))
    print_claims(measure(sizes, given.policy))
