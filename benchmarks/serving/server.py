"""The server under load: durable decisions, a thousand bandits, and decisions during an update.

The rate depends on the machine and on what else runs on it. The processor time of the server for
one request depends less on it, and one core cannot answer more requests a second than its inverse.
"""

import os

# Set before numpy is imported, because the benchmark measures a single core.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

import numpy as np

import submax
from submax.live.background import BACKGROUND

# The folder of the benchmarks, if the script is run by itself.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from load.fitted_bandit import fit_bandit
from measuring.claim import Claim, print_claims, print_table
from measuring.process_tree import readable
from serving.server_process import ServerProcess
from submax.live.bandits.bandit import LiveBandit
from submax.live.store.sqlite_store import SQLiteStore
from submax.web.server.run import SWITCH_SECONDS

ARMS = [f"arm-{number}" for number in range(10)]
NUMBERS = [f"x{number}" for number in range(20)]
CONTEXT = dict.fromkeys(NUMBERS, float)
ONE_CONTEXT = {name: 0.1 * place for place, name in enumerate(NUMBERS)}
CONNECTIONS, SECONDS = 16, 6.0
"""The number of HTTP connections, and the seconds for which they send requests."""
BANDITS, IDLE_SECONDS = 1000, 30.0
"""Bandits in one server, and the seconds for which it is left alone."""
SIZES = (1, 10, 100, 1000)
"""Decisions in one call of ``decide_many``."""
LOGGED, UPDATES, NEW_ROWS = 20_000, 20, 100
"""Rows of the log, and how often so many rows are added and learned from."""


def measure() -> list[Claim]:
    """Print all numbers and return the claims."""
    claims = deciding_many() + during_updates()
    # What a server costs is read from /proc.
    return over_http() + thousand_bandits() + claims if readable() else claims


def over_http() -> list[Claim]:
    """Durable decisions of fitted versions over HTTP, with and without a context."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.db"
        for name, context in (("plain", {}), ("context", CONTEXT)):
            fit_bandit(path, name, ARMS, context)
        with ServerProcess(path) as server:
            found = {}
            for name, body in (("plain", {}), ("context", {"context": ONE_CONTEXT})):
                found[name] = server.load(CONNECTIONS, SECONDS, f"/bandits/{name}/decide", body)
    rows = [
        (name, f"{one.rate:.0f}", f"{one.p99_ms:.1f}", f"{one.cpu_us:.0f}")
        for name, one in found.items()
    ]
    columns = ("durable decisions, 16 connections", "a second", "p99, ms", "processor time, µs")
    print_table("HTTP", columns, rows)
    rate, slow, cpu = found["plain"]
    return [
        Claim("durable decisions over HTTP a second", f"{rate:.0f}", "5000", rate >= 5000),
        Claim("the same, p99, ms", f"{slow:.1f}", "at most 15", slow <= 15),
        Claim("the same, processor time of each, µs", f"{cpu:.0f}", "at most 200", cpu <= 200),
    ]


def thousand_bandits() -> list[Claim]:
    """A server of a thousand bandits: its start, and what it costs while nobody asks."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "many.db"
        store = SQLiteStore(path)
        for number in range(BANDITS):
            bandit = submax.open(
                store, name=f"b{number}", actions=ARMS[:3], reward_wait=0, background=False
            )
            made = bandit.decide_many([{}] * 20)
            bandit.reward_many([{"id": one.id, "value": 1.0} for one in made])
            bandit.refit()
            bandit.stop()
        store.close()
        with ServerProcess(path) as server:
            # The ledgers are read once after the start.
            time.sleep(10.0)
            before = server.cpu
            time.sleep(IDLE_SECONDS)
            idle = (server.cpu - before) / IDLE_SECONDS
            cpu, seconds, threads = server.ready_cpu, server.ready_seconds, server.threads
            held = server.memory
    rows = [
        ("ready after, s", f"{seconds:.1f}"),
        ("processor time until then, s", f"{cpu:.1f}"),
        ("idle, share of one core", f"{idle:.1%}"),
        ("threads", str(threads)),
        ("memory, MB", f"{held / 1e6:.0f}"),
    ]
    print_table("A thousand bandits in one server", ("what", "measured"), rows)
    return [
        Claim("a thousand bandits are ready, s of processor", f"{cpu:.1f}", "10", cpu <= 10),
        Claim("the same, idle, share of a core", f"{idle:.1%}", "at most 3 %", idle <= 0.03),
        Claim("the same, threads", str(threads), "at most 30", threads <= 30),
    ]


def deciding_many() -> list[Claim]:
    """The processor time of one of n decisions that are drawn in one call, before logging."""
    rows, found = [], {}
    for name, context, given in (("plain", {}, {}), ("context", CONTEXT, {"context": ONE_CONTEXT})):
        bandit = submax.open(":memory:", actions=ARMS, context=context, background=False)
        for size in SIZES:
            requests = [given] * size
            calls = max(1, 1000 // size)
            found[name, size] = min(
                _cpu(lambda: bandit.requests.deciding_many(requests), calls) / size  # noqa: B023 - called at once
                for _ in range(5)
            )
        rows.append((name, *[f"{1e6 * found[name, size]:.1f}" for size in SIZES]))
    print_table("One of n decisions, µs", ("n", *map(str, SIZES)), rows)
    ratio = found["context", 1] / found["context", 100]
    return [
        Claim(
            "a decision with 20 numbers by itself against one of 100 in one call",
            f"{ratio:.1f} times",
            "at least 2",
            ratio >= 2,
        )
    ]


def _cpu(work: Callable[[], object], calls: int) -> float:
    begin = time.process_time()
    for _ in range(calls):
        work()
    return (time.process_time() - begin) / calls


def during_updates() -> list[Claim]:
    """The 99 % quantile of the time of a decision while versions are fitted, and while not.

    The threads take turns as often as in the server.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        with tempfile.TemporaryDirectory() as folder:
            bandit = submax.open(
                Path(folder) / "long.db",
                actions=ARMS,
                context=CONTEXT,
                reward_wait=0,
                background=False,
            )
            rng = np.random.default_rng(1)
            _add_rows(bandit, LOGGED, rng)
            scratch = _slowest(bandit, bandit.refit)
            quiet, busy = [], []
            for _ in range(UPDATES):
                _add_rows(bandit, NEW_ROWS, rng)
                busy += _times(bandit, bandit.refit)
                quiet += _times(bandit, lambda: time.sleep(0.2))
            bandit.close()
    finally:
        sys.setswitchinterval(before)
    alone, fitting = (1e3 * float(np.quantile(times, 0.99)) for times in (quiet, busy))
    rows = [
        ("no update", f"{alone:.2f}"),
        (f"updates with {NEW_ROWS} rows", f"{fitting:.2f}"),
        (f"a fit of {LOGGED:,} rows from scratch", f"{1e3 * scratch:.2f}"),
    ]
    print_table("Decisions with 20 numbers during", ("what", "p99, ms"), rows)
    return [
        Claim(
            "p99 of a decision during an update against without",
            f"{fitting / alone:.2f} times",
            "at most 2",
            fitting <= 2 * alone,
        )
    ]


def _slowest(bandit: LiveBandit, work: Callable[[], object]) -> float:
    return float(np.quantile(_times(bandit, work), 0.99))


def _times(bandit: LiveBandit, work: Callable[[], object]) -> list[float]:
    """The seconds of each decision while another thread works."""
    ended, times = Event(), []

    def run() -> None:
        work()
        ended.set()

    Thread(target=run).start()
    while not ended.is_set():
        begin = time.perf_counter()
        # As ``Bandit.decide`` does, but without the wait for the disk.
        with BACKGROUND.held_off():
            bandit.requests.deciding(ONE_CONTEXT)
        times.append(time.perf_counter() - begin)
        time.sleep(0.001)
    return times


def _add_rows(bandit: LiveBandit, count: int, rng: np.random.Generator) -> None:
    for first in range(0, count, 1000):
        rows = rng.normal(size=(min(1000, count - first), len(NUMBERS))).tolist()
        made = bandit.decide_many(
            [{"context": dict(zip(NUMBERS, row, strict=True))} for row in rows]
        )
        rewards = rng.integers(2, size=len(made)).tolist()
        bandit.reward_many(
            [
                {"id": one.id, "value": float(reward)}
                for one, reward in zip(made, rewards, strict=True)
            ]
        )


if __name__ == "__main__":
    print_claims(measure())
