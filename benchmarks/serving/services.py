"""submax over HTTP, plain SQLite and Vowpal Wabbit's daemon, with 16 connections, in one run.

They promise different things, which the table says beside the rates. All decide among ten arms.
Plain SQLite only stores; it is the rate of durable appends that a store on this disk can have, one
transaction for each row, and one for sixteen rows, as if sixteen callers shared it. The load comes
from a process of its own.
"""

import os

# Set before numpy is imported, because the benchmark measures a single core.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

# The folder of the benchmarks, if the script is run by itself.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measuring import (
    Claim,
    PeerUnavailableError,
    at_least,
    at_most,
    cpu_seconds,
    family,
    install,
    peer_environment,
    print_claims,
    print_table,
)
from serving.load import Load, http_request, load
from serving.server import Server, fit_bandit

CONNECTIONS, SECONDS = 16, 6.0
"""The number of connections, and the seconds for which they send requests."""
ARMS = [f"arm-{number}" for number in range(10)]
COUNTRY: dict[str, Any] = {"country": ["fr", "de", "us"], "age": float, "visits": float}
NUMBERS: dict[str, Any] = dict.fromkeys([f"x{number}" for number in range(20)], float)
REQUESTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "no context": ({}, {}),
    "3 columns": (COUNTRY, {"context": {"country": "fr", "age": 31, "visits": 4}}),
    "20 numbers": (NUMBERS, {"context": dict.fromkeys(NUMBERS, 0.5)}),
}
"""The declared context and the body of a request, by what it has."""
ROW = b"x" * 200
"""A row of plain SQLite; a decision of submax has about this many bytes."""
DAEMON = """
import sys
from vowpalwabbit import Workspace
port, children = sys.argv[1:]
Workspace(
    "--cb_explore_adf --epsilon 0.1 --interactions sa --quiet --daemon --foreground "
    f"--port {port} --num_children {children}"
).run_parser()
"""
"""Vowpal Wabbit's own daemon, ``vw --daemon``, started from its Python package.

The package has no program ``vw``, but its library has the daemon. A process of it serves one
connection at a time, so there are as many processes as connections; their weights are in shared
memory, so one learns for all.
"""
STARTED_SECONDS = 20.0


class Service(NamedTuple):
    """What was measured of a service, and what the service promises."""

    name: str
    load: Load
    cpu_us: float
    durable: str
    propensity: str
    learns: str


def measure() -> list[Claim]:
    """Print the table and return the claims."""
    own, single = submax_over_http(), plain_sqlite(1)
    services = [*own, single, plain_sqlite(CONNECTIONS), *vowpal_wabbit()]
    columns = ("service", "a second", "p50 ms", "p99 ms", "CPU µs")
    rows = [
        (
            one.name,
            f"{one.load.rate:.0f}",
            f"{one.load.p50_ms:.2f}",
            f"{one.load.p99_ms:.2f}",
            f"{one.cpu_us:.0f}",
            *one[3:],
        )
        for one in services
    ]
    promises = ("durable", "propensity", "learns")
    print_table(f"Services with {CONNECTIONS} connections", (*columns, *promises), rows)
    plain = own[0]
    return [
        at_least("durable decisions over HTTP a second", plain.load.rate, 5000),
        at_least("the same, times plain SQLite", plain.load.rate / single.load.rate, 1),
        at_most("the same, p99", plain.load.p99_ms, 15, "ms"),
        at_most("the same, CPU time of each", plain.cpu_us, 200, "µs"),
    ]


def submax_over_http() -> list[Service]:
    """Durable decisions of fitted versions in a SQLite file, by the default policy."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.db"
        for number, (context, _) in enumerate(REQUESTS.values()):
            fit_bandit(path, f"b{number}", ARMS, context)
        with Server(path) as server:
            return [
                measured(
                    f"submax serve, SQLite, {name}",
                    [server.process.pid],
                    *("http", server.port, http_request(f"/bandits/b{number}/decide", body)),
                    *("yes", "exact, logged", "in versions"),
                )
                for number, (name, (_, body)) in enumerate(REQUESTS.items())
            ]


def measured(
    name: str, processes: Iterable[int], protocol: str, port: int, request: bytes, *promises: str
) -> Service:
    """Load a service, and measure the processor time of its processes."""
    before = cpu_seconds(processes)
    found = load(protocol, port, request, CONNECTIONS, SECONDS)
    cost = 1e6 * (cpu_seconds(processes) - before) / found.all_requests
    durable, propensity, learns = promises
    return Service(name, found, cost, durable, propensity, learns)


def plain_sqlite(rows: int) -> Service:
    """Appends to a table by 16 connections, in transactions of so many rows, synced fully."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plain.db"
        connected(path).execute("CREATE TABLE log (number INTEGER PRIMARY KEY, body BLOB)")
        end, before = time.perf_counter() + SECONDS, time.process_time()
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            working = [pool.submit(append, path, rows, end) for _ in range(CONNECTIONS)]
            times = np.concatenate([one.result() for one in working])
        spent = time.process_time() - before
    count = rows * len(times)
    name = "plain SQLite, a commit each" if rows == 1 else f"plain SQLite, {rows} rows a commit"
    p50, p99 = 1e3 * np.quantile(times, (0.5, 0.99))
    found = Load(count / SECONDS, float(p50), float(p99), count)
    return Service(name, found, 1e6 * spent / count, "yes", "none", "no")


def connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, timeout=60.0)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def append(path: Path, rows: int, end: float) -> list[float]:
    """The seconds of each transaction."""
    connection, times = connected(path), []
    while (begin := time.perf_counter()) < end:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO log (body) VALUES (?)", [(ROW,)] * rows)
        connection.execute("COMMIT")
        times.append(time.perf_counter() - begin)
    connection.close()
    return times


def vowpal_wabbit() -> list[Service]:
    """Predictions, and learning, of Vowpal Wabbit's daemon; nothing if it does not run here."""
    try:
        python = install("vowpalwabbit")
    except PeerUnavailableError as error:
        print(f"Vowpal Wabbit does not run here: {error}")
        return []
    return [daemon(python, "decide", None, "when told"), daemon(python, "learn", 3, "at once")]


def daemon(python: Path, what: str, taken: int | None, learns: str) -> Service:
    """Start the daemon, load it, and end it."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
    started = subprocess.Popen(
        [str(python), "-c", DAEMON, str(port), str(CONNECTIONS)],
        env=peer_environment(),
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        end = time.monotonic() + STARTED_SECONDS
        # Once the daemon has all of its processes, they accept connections.
        while len(family(started.pid)) <= CONNECTIONS:
            if time.monotonic() > end:
                raise RuntimeError("Vowpal Wabbit's daemon does not start")
            time.sleep(0.05)
        return measured(
            f"Vowpal Wabbit's daemon, {what}, 3 columns",
            sorted(family(started.pid)),
            *("lines", port, example(taken), "no", "6 digits; the caller draws", learns),
        )
    finally:
        # The daemon replaces processes that end, so all of them are ended at once.
        os.killpg(started.pid, signal.SIGKILL)
        started.wait()


def example(taken: int | None) -> bytes:
    """An example in the text format; with an action taken it has a label, and is learned from."""
    lines = [f"|a arm={number}" for number in range(len(ARMS))]
    if taken is not None:
        lines[taken] = f"0:-1:{1 / len(ARMS)} {lines[taken]}"
    return ("\n".join(["shared |s country=fr age:31 visits:4", *lines]) + "\n\n").encode()


if __name__ == "__main__":
    print_claims(measure())
