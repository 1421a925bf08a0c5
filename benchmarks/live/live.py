"""The time of live decisions in the process, and of opening a long log.

For comparison, in the same run: Vowpal Wabbit's Python package decides and learns on the same
problem, and rows are appended to a plain SQLite table, one transaction each. The latter is the
highest rate of durable decisions without group commits.
"""

import os

# Set before numpy is imported, because the benchmark measures a single core.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import json
import sqlite3
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import submax

# The folder of the benchmarks, if the script is run by itself.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring.claim import Claim, print_claims, print_table
from measuring.peer_runs import PeerUnavailableError, run_peer
from submax.core.errors import ContextIgnoredWarning
from submax.testing import ManualClock

ARMS = [f"arm-{number}" for number in range(10)]
CONTEXT: dict[str, Any] = {"country": ["fr", "de", "us"], "age": float, "visits": float}
ONE_CONTEXT = {"country": "fr", "age": 31, "visits": 4}
CALLS = 5000
"""How many decisions in the process are timed."""
LOGGED = 1_000_000
"""Decisions in the log that is opened."""
PLAIN_ROWS = 2000
"""Rows that are appended to the plain SQLite table."""


def measure() -> list[Claim]:
    """Print all times and return the claims."""
    counting, network = in_process()
    plain = plain_appends()
    opening = opening_seconds()
    peer = vowpal_wabbit()
    rows = [
        ("submax, decide among 10 arms, before logging", f"{counting:.1f} µs"),
        ("submax, the same with a context and a trained CVAE", f"{network:.1f} µs"),
        *[
            (f"Vowpal Wabbit, {what}, 10 arms with the same context", f"{value:.1f} µs")
            for what, value in peer.items()
        ],
        ("a plain append to SQLite, a commit each", f"{plain:.0f} a second"),
        ("opening a bandit with one million decisions", f"{opening:.2f} s"),
    ]
    print_table("Live decisions", ("what", "measured"), rows)
    return [
        Claim(
            "decide among 10 arms, before logging, µs",
            f"{counting:.1f}",
            "at most 20",
            counting <= 20,
        ),
        Claim("the same with a trained CVAE, µs", f"{network:.1f}", "at most 150", network <= 150),
        Claim("opening one million decisions, s", f"{opening:.2f}", "at most 5", opening <= 5),
    ]


def in_process() -> tuple[float, float]:
    """Median microseconds of a decision before it is written: without context, and with a CVAE."""
    plain = submax.open(":memory:", actions=ARMS, background=False)
    clock = ManualClock()
    trained = submax.open(
        ":memory:",
        actions=ARMS,
        context=CONTEXT,
        policy="rcp-cvae-submax",
        background=False,
        clock=clock,
    )
    made = trained.decide_many([{"context": ONE_CONTEXT}] * 1000)
    trained.reward_many([{"id": one.id, "value": float(one.action == ARMS[3])} for one in made])
    clock.now += 10_000
    trained.refit()
    return (
        _median(plain.prepare_decision),
        _median(lambda: trained.prepare_decision(ONE_CONTEXT)),
    )


def _median(work: Callable[[], object]) -> float:
    times = []
    for _ in range(CALLS):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return 1e6 * float(np.median(times))


def plain_appends() -> float:
    """Rows per second, each in a transaction of its own with full synchronization."""
    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(Path(folder) / "plain.db", isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("CREATE TABLE log (number INTEGER PRIMARY KEY, body BLOB)")
        begin = time.perf_counter()
        for _ in range(PLAIN_ROWS):
            connection.execute("INSERT INTO log (body) VALUES (?)", (b"x" * 200,))
        seconds = time.perf_counter() - begin
        connection.close()
    return PLAIN_ROWS / seconds


def opening_seconds() -> float:
    """The seconds to open a log of a million decisions, the last tenth of which is not mature."""
    clock = ManualClock()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        # Uniform decisions are the fastest to log; that they ignore the context does not matter.
        warnings.simplefilter("ignore", ContextIgnoredWarning)
        path = Path(folder) / "long.db"
        with submax.open(
            path,
            actions=ARMS,
            context=CONTEXT,
            policy="random",
            clock=clock,
            reward_wait=1000.0,
            background=False,
        ) as bandit:
            for number in range(LOGGED // 1000):
                made = bandit.decide_many([{"context": ONE_CONTEXT}] * 1000)
                bandit.reward_many([{"id": one.id, "value": 1.0} for one in made[:100]])
                clock.now += 10.0
                if number % 100 == 99:
                    bandit.refit()
        begin = time.perf_counter()
        with submax.open(path, clock=clock, background=False) as bandit:
            assert bandit.counts()["decisions"] == LOGGED
            return time.perf_counter() - begin


def vowpal_wabbit() -> dict[str, float]:
    """The peer's microseconds to decide and to learn; empty if it does not install or run."""
    try:
        found: dict[str, float] = json.loads(run_peer("vowpalwabbit").splitlines()[-1])
        return found
    except PeerUnavailableError as error:
        print(f"Vowpal Wabbit does not run here: {error}")
        return {}


if __name__ == "__main__":
    print_claims(measure())
