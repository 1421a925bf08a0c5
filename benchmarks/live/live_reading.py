"""Reading and exporting the log of a live bandit, and the bytes that a decision takes on disk."""

import os

# Set before numpy is imported, because the benchmark measures a single core.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec
import numpy as np

import submax

# The folder of the benchmarks, if the script is run by itself.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring.claim import Claim, print_claims
from submax.bandit.names import new_identifier
from submax.live.declaring.settings_projection import SettingsProjection
from submax.live.log.export import Export
from submax.live.log.ledger import ledger_of
from submax.live.log.records import (
    DECISION,
    REWARD,
    DecisionMade,
    RewardGiven,
    decision_key,
    reward_key,
)
from submax.live.store.event import Entry
from submax.live.store.sqlite_store import SQLiteStore

ARMS, WIDTH, AT_ONCE = 10, 20, 500
DECISIONS, FEW, MANY = 100_000, 10_000, 1_000_000
"""Decisions in the log that is read, and in the two logs whose exports are compared."""
READ_GOAL, EXPORT_GOAL = 200_000, 100_000
"""Events and rows per second of processor time."""
BYTES_GOAL = 600
"""The most bytes of a decision with 20 numbers of context and its reward, before compaction."""
GROWTH_GOAL = 50
"""The most megabytes by which the larger export may take more memory than the smaller one."""


def measure() -> list[Claim]:
    """Return the claims about reading, exporting and storing a log."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.db"
        fill(path, DECISIONS)
        events, rows, size = read_rate(path), export_rate(path), path.stat().st_size / DECISIONS
        peaks = []
        for count in (FEW, MANY):
            other = Path(folder) / f"rows{count}.db"
            fill(other, count)
            peaks.append(export_peak(other))
            other.unlink()
    growth = peaks[1] - peaks[0]
    return [
        _at_least("events per second of a first read", events, READ_GOAL),
        _at_least("rows per second of an export", rows, EXPORT_GOAL),
        _at_most(
            f"memory of {MANY:,} exported rows over that of {FEW:,}", growth, GROWTH_GOAL, "MB"
        ),
        _at_most(f"a decision with {WIDTH} numbers and its reward", size, BYTES_GOAL, "bytes"),
    ]


def fill(path: Path, decisions: int, seed: int = 0) -> None:
    """Write a log of decisions, each followed by its reward within some hundred events."""
    submax.open(
        path,
        actions=[f"a{number}" for number in range(ARMS)],
        context={f"x{number}": float for number in range(WIDTH)},
        reward_wait=5.0,
        name="page",
        background=False,
    ).close()
    rng, events = np.random.default_rng(seed), iter(range(10 * decisions))
    store = SQLiteStore(path, clock=lambda: 1.7e9 + 0.001 * next(events))
    for begin in range(0, decisions, AT_ONCE):
        identifiers = [new_identifier() for _ in range(min(AT_ONCE, decisions - begin))]
        store.append("page/log", [_decision(one, rng) for one in identifiers]).result()
        store.append("page/log", [_reward(one, rng) for one in identifiers]).result()
    store.close()


def _decision(identifier: str, rng: np.random.Generator) -> Entry:
    chances, action = rng.dirichlet(np.ones(ARMS)), int(rng.integers(ARMS))
    made = DecisionMade(
        [action],
        float(chances[action]),
        1,
        rng.normal(size=WIDTH).tolist(),
        (tuple(range(ARMS)),),
        chances.tolist(),
        True,
        False,
    )
    return Entry(DECISION, msgspec.msgpack.encode(made), decision_key(identifier))


def _reward(identifier: str, rng: np.random.Generator) -> Entry:
    body = msgspec.msgpack.encode(RewardGiven(float(rng.integers(2))))
    return Entry(REWARD, body, reward_key(identifier, "reward"), decision_key(identifier))


def read_rate(path: Path, rounds: int = 3) -> float:
    """Return the events per second of processor time of reading a log into a ledger."""
    store = SQLiteStore(path, read_only=True)
    settings = SettingsProjection.of(store, "page").settings
    best = 0.0
    for _ in range(rounds):
        begin = time.process_time()
        ledger = ledger_of(store, "page", settings)
        ledger.follow()
        events = ledger.counts["decisions"] + ledger.counts["rewards"]
        best = max(best, events / (time.process_time() - begin))
    store.close()
    return best


def export_rate(path: Path, rounds: int = 2) -> float:
    """Return the rows per second of processor time of an export."""
    store, best = SQLiteStore(path, read_only=True), 0.0
    for _ in range(rounds):
        begin = time.process_time()
        rows = Export(store, "page").write(path.with_suffix(".parquet"))
        best = max(best, rows / (time.process_time() - begin))
    store.close()
    return best


def export_peak(path: Path) -> float:
    """Return the highest memory, in megabytes, of a process that exports a log."""
    command = [sys.executable, __file__, str(path)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def _print_peak(path: Path) -> None:
    export_rate(path, rounds=1)
    # Kilobytes on Linux, bytes on macOS.
    unit = 1e6 if sys.platform == "darwin" else 1e3
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit)


def _at_least(what: str, measured: float, goal: float) -> Claim:
    return Claim(what, f"{measured:,.0f}", f"{goal:,.0f}", measured >= goal)


def _at_most(what: str, measured: float, goal: float, unit: str) -> Claim:
    return Claim(what, f"{measured:,.0f} {unit}", f"{goal:,.0f} {unit}", measured <= goal)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _print_peak(Path(sys.argv[1]))
    else:
        print_claims(measure())
