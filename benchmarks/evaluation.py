"""Off-policy evaluation of a million rows, and reading of ten million.

Beside it, on the same arrays and in the same run: Open Bandit Pipeline.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from claim import Claim, print_claims, print_table
from peer_runs import PeerUnavailable, run_peer
from submax.core.arrays import Floats
from submax.evaluation.evidence import Evidence
from submax.evaluation.off_policy import make_off_policy
from submax.evaluation.report.intervals import INTERVALS

sys.path.append(str(Path(__file__).parent / "peers"))
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
"""What the peer calls each, with the thresholds that it is given."""
CHOSEN = ("ips", "snips", "clipped", "dm", "dr", "switch-dr", "dr-shrinkage", "replay")
SAME = ("ipw", "snipw", "dm", "dr", "dr-os")
"""Estimators whose values must agree; its replay and switch are defined in other ways."""
MANY, NUMBERS = 10_000_000, 4
READER = """
import resource, sys, time
begin = time.perf_counter()
from submax.evaluation import Log
log = Log.read(sys.argv[1])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(len(log), peak * 1024, time.perf_counter() - begin)
"""


def measure() -> list[Claim]:
    """Print a table of everything, and return the claims."""
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
        (f"reading {MANY} rows of Parquet, {NUMBERS} numbers and a category", f"{reading:.1f} s"),
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
    """Values, and seconds from the arrays to all intervals."""
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
        INTERVALS[name](terms, 0.95, np.random.default_rng(0))
    return [one.value for one in terms], time.perf_counter() - begin


def open_bandit_pipeline() -> dict[str, Any] | None:
    """What the peer found, None where it does not install or run."""
    try:
        output = run_peer("obp")
    except PeerUnavailable as error:
        print(f"Open Bandit Pipeline is left out: {error}")
        return None
    lines = [line for line in output.splitlines() if line.startswith("{")]
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def check_same(ours: dict[str, float], theirs: dict[str, float]) -> None:
    """Both did the same work."""
    for name in SAME:
        if abs(ours[name] - theirs[name]) > 1e-9:
            raise AssertionError(f"{name}: {ours[name]} here, {theirs[name]} there")


def ten_million() -> tuple[float, float]:
    """Gigabytes at the most, and seconds, of a process that reads a log."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path, step = Path(folder) / "log.parquet", MANY // 10
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
    if count != MANY:
        raise AssertionError(f"{count} rows were read, not {MANY}")
    return memory / 1e9, seconds


def _seconds(peer: dict[str, Any] | None) -> str:
    return (
        "not installed" if peer is None else f"{peer['seconds']:.1f} s (version {peer['version']})"
    )


if __name__ == "__main__":
    print_claims(measure())
