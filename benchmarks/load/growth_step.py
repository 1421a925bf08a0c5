"""One step of ``growth.py``, in a process of its own, so that its memory can be measured.

``python benchmarks/load/growth_step.py STEP FOLDER WIDTH ROWS POLICY`` prints a line of JSON: name
and number of everything that was measured. POLICY is a name or a JSON table.
"""

import os

# Set before numpy is imported, because the benchmark measures a single core.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import itertools
import json
import shutil
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

# The folder of the benchmarks, if the script is run by itself.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from load.child_processes import NewChildren
from load.growing_log import GrowingLog
from load.lock_probe import LockProbe
from load.resident import peak, resident
from measuring.stopwatch import seconds
from submax.cli import main as submax_command
from submax.live.log.snapshot import snapshot_name

NEW_ROWS = 100
"""Rows that mature between two versions."""
UPDATES = 7
"""Updates that are measured; the median counts."""
DECISIONS = 2000
"""Decisions that are timed during updates; the slowest of a hundred counts."""
QUIET_DECISIONS = 50
"""Decisions that are timed between two updates."""
LONGEST_SECONDS = 60.0
"""For this long decisions are timed during updates, if updates are so short that few overlap."""
Measured = dict[str, float]


def fill(log: GrowingLog, rows: int, policy: Any) -> Measured:
    """Extend the log."""
    begin = time.perf_counter()
    events = log.extend(rows)
    return {"filled_events": events, "fill_wall_s": time.perf_counter() - begin}


def read(log: GrowingLog, rows: int, policy: Any) -> Measured:
    """Read the whole log, as if there were no snapshot."""
    with log.open("random") as bandit:
        bandit.store.delete_blob(snapshot_name(bandit.name))
        spent = seconds(bandit.ledger)
        counts = bandit.counts()
    events = counts["decisions"] + counts["rewards"] + counts.get("late rewards", 0)
    return {"read_events_per_s": events / spent, "read_cpu_s": spent, "read_peak_mb": peak()}


def update(log: GrowingLog, rows: int, policy: Any) -> Measured:
    """Fit versions with some new rows each, and decide at the same time."""
    with log.open(policy) as bandit:
        # While the log was written, version 0 was held.
        bandit.publish()
        # Without a snapshot the log is read first, which the step `read` measures.
        bandit.ledger()
        children = NewChildren()
        scratch = seconds(lambda: fitted(bandit))
        found = {
            "scratch_cpu_s": scratch,
            "scratch_peak_mb": peak(),
            "scratch_training_cpu_s": children.cpu_seconds(),
            **update_costs(log, bandit, children),
            "memory_mb": resident(),
            "training_mb": children.megabytes(),
            "longest_wait_for_lock_ms": longest_wait(log, bandit),
        }
        quiet, during = decide_times(log, bandit)
    log.mature()
    return {
        **found,
        "decide_p50_ms": 1e3 * float(np.quantile(quiet, 0.5)),
        "decide_p99_ms": 1e3 * float(np.quantile(quiet, 0.99)),
        "decide_p50_updating_ms": 1e3 * float(np.quantile(during, 0.5)),
        "decide_p99_updating_ms": 1e3 * float(np.quantile(during, 0.99)),
        "decides_updating": len(during),
    }


def update_costs(log: GrowingLog, bandit: Any, children: NewChildren) -> Measured:
    """Processor time of an update, here and in the process that trains models, and wall time."""
    spent, trained, waited = [], [], []
    for _ in range(UPDATES):
        log.add(bandit, NEW_ROWS)
        log.mature()
        begin, before = time.perf_counter(), children.cpu_seconds()
        spent.append(seconds(lambda: fitted(bandit)))
        waited.append(time.perf_counter() - begin)
        trained.append(children.cpu_seconds() - before)
    return {
        "update_cpu_ms": 1e3 * float(np.median(spent)),
        "update_wall_ms": 1e3 * float(np.median(waited)),
        "update_training_cpu_ms": 1e3 * float(np.median(trained)),
    }


def longest_wait(log: GrowingLog, bandit: Any) -> float:
    """Milliseconds that another thread waits for Python's lock at most; the median of updates."""
    found = []
    for _ in range(UPDATES):
        log.add(bandit, NEW_ROWS)
        log.mature()
        probe = LockProbe()
        with probe.running():
            fitted(bandit)
        found.append(max(probe.seconds_late, default=0.0))
    return 1e3 * float(np.median(found))


def fitted(bandit: Any) -> None:
    """Fit a version, which must have something new to learn from."""
    result = bandit.refit()
    if not result:
        raise RuntimeError(f"nothing was measured, because no version was fitted: {result.reason}")


def decide_times(log: GrowingLog, bandit: Any) -> tuple[list[float], list[float]]:
    """Seconds of durable decisions: while nothing else happens, and while a version is fitted.

    Both are measured in turn, because the disk is not equally fast all the time. The first decision
    after an update counts as one during it: it may wait for what the update has written.
    """
    contexts = itertools.cycle(log.contexts(DECISIONS))
    quiet: list[float] = []
    during: list[float] = []
    updates, end = 0, time.monotonic() + LONGEST_SECONDS

    def decide() -> None:
        bandit.decide(next(contexts))

    with ThreadPoolExecutor(1) as pool:
        while updates < UPDATES or (len(during) < DECISIONS and time.monotonic() < end):
            quiet += [_timed(decide) for _ in range(QUIET_DECISIONS)]
            log.add(bandit, NEW_ROWS)
            log.mature()
            update, is_running = pool.submit(fitted, bandit), True
            while is_running:
                is_running = not update.done()
                during.append(_timed(decide))
            update.result()
            updates += 1
    log.decisions += len(quiet) + len(during)
    return quiet, during


def _timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def export(log: GrowingLog, rows: int, policy: Any) -> Measured:
    """Export the log by the command."""
    spent, memory = _exported(log.path, log.folder / "export.parquet")
    return {"export_rows_per_s": log.decisions / spent, "export_peak_mb": memory}


def _exported(path: Path, out: Path) -> tuple[float, float]:
    words = ["export", str(path), "--out", str(out)]
    spent = seconds(lambda: submax_command(words, standalone_mode=False))
    out.unlink()
    return spent, peak()


def opening(log: GrowingLog, rows: int, policy: Any) -> Measured:
    """Open the bandit from its snapshot, and decide once."""
    begin = time.perf_counter()
    with log.open(policy) as bandit:
        bandit.decide(log.contexts(1)[0])
        first = time.perf_counter() - begin
        bandit.ledger()
        return {"open_s": first, "open_and_read_s": time.perf_counter() - begin}


def size(log: GrowingLog, rows: int, policy: Any) -> Measured:
    """Bytes on disk."""
    return {"bytes_per_decision": log.bytes / log.decisions}


def compact(log: GrowingLog, rows: int, policy: Any) -> Measured:
    """Bytes on disk after compaction, on a copy; nothing if there is no command that compacts."""
    if not can_compact():
        return {}
    folder = log.folder / "copy"
    shutil.copytree(log.path.parent, folder / "store")
    try:
        copy = GrowingLog.__new__(GrowingLog)
        copy.path = folder / "store" / log.path.name
        words = ["compact", str(copy.path), "--older-than", "0"]
        spent = seconds(lambda: submax_command(words, standalone_mode=False))
        compacted = copy.bytes / log.decisions
        exporting, _ = _exported(copy.path, folder / "export.parquet")
    finally:
        shutil.rmtree(folder)
    return {
        "compacted_bytes_per_decision": compacted,
        "compact_cpu_s": spent,
        "compacted_export_rows_per_s": log.decisions / exporting,
    }


def can_compact() -> bool:
    """Whether this submax has the command ``compact``."""
    return "compact" in submax_command.commands


STEPS = {
    "fill": fill,
    "read": read,
    "update": update,
    "export": export,
    "opening": opening,
    "size": size,
    "compact": compact,
}

if __name__ == "__main__":
    step, folder, width, rows, policy = sys.argv[1:]
    table = json.loads(policy) if policy.startswith("{") else policy
    print(json.dumps(STEPS[step](GrowingLog(Path(folder), int(width)), int(rows), table)))
