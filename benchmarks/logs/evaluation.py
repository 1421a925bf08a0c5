"""The time to evaluate a log of a million rows off-policy, and to read one of ten million rows.

Open Bandit Pipeline evaluates the same arrays in the same run.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

# The folder of the benchmarks, if the script is run by itself.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring.claim import Claim, print_claims, print_table
from measuring.peer_runs import PeerUnavailableError, run_peer
from submax.core.arrays import Floats
from submax.evaluation.estimators import Evidence, make_off_policy
from submax.evaluation.intervals import INTERVALS

sys.path.append(str(Path(__file__).resolve().parents[1] / "peers"))
from logged import ACTIONS, ROWS, arrays

GIVEN: dict[str, str | dict[str, Any]] = {
    "rm": "replay",
    "ipw": "ips",
    "snipw": "snips",
    "dm": "dm",
    "dr": "dr",
    "switch-dr": {"kind": "switch-dr", "threshold": 50.0},
    "dr-os": {"kind": "dr-shrinkage", "shrinkage": 100.0},
}
"""Our estimators with given thresholds, by the names that Open Bandit Pipeline has for them."""
CHOSEN = ("ips", "snips", "clipped", "dm", "dr", "switch-dr", "dr-shrinkage", "replay")
"""Our estimators whose thresholds are chosen from the data."""
SAME = ("ipw", "snipw", "dm", "dr", "dr-os")
"""Estimators whose values must agree; the peer defines its replay and switch differently."""
READ_ROWS, NUMBERS = 10_000_000, 4
"""The rows, and the numbers of context in a row, of the log that is read."""
READER = """
import resource, sys, time
begin = time.perf_counter()
from submax.evaluation import Log
log = Log.read(sys.argv[1])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(len(log), peak * 1024, time.perf_counter() - begin)
"""


def measure() -> list[Claim]:
    """Print all times and return the claims."""
    log = arrays()
    values, given = timed(log, list(GIVEN.values()), ["bootstrap"])
    _, everything = timed(log, list(CHOSEN), list(INTERVALS))
    peer = open_bandit_pipeline()
    memory, reading = ten_million()
    rows = [
        (
            f"submax, {len(CHOSEN)} estimators, thresholds chosen, 3 intervals",
            f"{everything:.2f} s",
        ),
        (f"submax, {len(GIVEN)} estimators as the peer, 1000 resamples", f"{given:.2f} s"),
        ("Open Bandit Pipeline, the same, 100 resamples", _seconds(peer)),
        (
            f"reading {READ_ROWS} rows of Parquet, {NUMBERS} numbers and a category",
            f"{reading:.1f} s",
        ),
    ]
    print_table(f"Evaluation of {ROWS} rows, {ACTIONS} actions", ("what", "measured"), rows)
    if peer is not None:
        check_same(dict(zip(GIVEN, values, strict=True)), peer["values"])
    ratio = None if peer is None else peer["seconds"] / given
    return [
        Claim(
            "all estimators and intervals on a million rows, s",
            f"{everything:.2f}",
            "at most 5",
            everything <= 5,
        ),
        Claim(
            "as many times as fast as Open Bandit Pipeline",
            "not installed" if ratio is None else f"{ratio:.0f}",
            "at least 5",
            None if ratio is None else ratio >= 5,
        ),
        Claim("memory for ten million rows, GB", f"{memory:.2f}", "below 2", memory < 2),
    ]


def timed(
    log: dict[str, Floats], estimators: list[Any], intervals: list[str]
) -> tuple[list[float], float]:
    """The estimates, and the seconds from the arrays to all intervals."""
    made = [make_off_policy(one) for one in estimators]
    begin = time.perf_counter()
    row = np.arange(ROWS)
    probability = log["policy"][row, log["action"]]
    evidence = Evidence(
        log["reward"],
        probability / log["propensity"],
        probability,
        log["model"][row, log["action"]],
        np.einsum("na,na->n", log["policy"], log["model"]),
    )
    terms = [one.terms(evidence) for one in made]
    for name in intervals:
        INTERVALS[name]([one.summed() for one in terms], 0.95, np.random.default_rng(0))
    return [one.value for one in terms], time.perf_counter() - begin


def open_bandit_pipeline() -> dict[str, Any] | None:
    """The estimates and the time of the peer; None if it does not install or run."""
    try:
        output = run_peer("obp")
    except PeerUnavailableError as error:
        print(f"Open Bandit Pipeline is left out: {error}")
        return None
    lines = [line for line in output.splitlines() if line.startswith("{")]
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def check_same(ours: dict[str, float], theirs: dict[str, float]) -> None:
    """Check that both libraries computed the same estimates."""
    for name in SAME:
        if abs(ours[name] - theirs[name]) > 1e-9:
            raise AssertionError(f"{name} is {ours[name]} here and {theirs[name]} in the peer")


def ten_million() -> tuple[float, float]:
    """The peak memory in gigabytes, and the seconds, of a process that reads a log."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path, step = Path(folder) / "log.parquet", READ_ROWS // 10
        writer = None
        for part in range(10):
            table = pa.table(
                {
                    "id": np.arange(part * step, (part + 1) * step),
                    "action": np.array(["A", "B", "C"])[rng.integers(3, size=step)],
                    "reward": rng.integers(2, size=step),
                    "propensity": np.full(step, 1 / 3),
                    "context_country": np.array(["fr", "de", "us"])[rng.integers(3, size=step)],
                    **{f"context_x{n}": rng.normal(size=step) for n in range(NUMBERS)},
                }
            )
            writer = writer or pq.ParquetWriter(path, table.schema)
            writer.write_table(table)
        if writer is not None:
            writer.close()
        command = [sys.executable, "-c", READER, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    count, memory, seconds = map(float, done.stdout.split())
    if count != READ_ROWS:
        raise AssertionError(f"{count} rows were read, not {READ_ROWS}")
    return memory / 1e9, seconds


def _seconds(peer: dict[str, Any] | None) -> str:
    return (
        "not installed" if peer is None else f"{peer['seconds']:.1f} s (version {peer['version']})"
    )


if __name__ == "__main__":
    print_claims(measure())
