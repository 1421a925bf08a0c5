"""submax over HTTP beside plain SQLite, with 16 connections, in one run.

Plain SQLite only stores; it is the rate of durable appends that a store on this disk can have, one
transaction for each row, and one for sixteen rows, as if sixteen callers shared it. The load comes
from a process of its own.
"""

import sqlite3
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from measuring import Claim, at_least, at_most, print_table
from serving.load import Load, http_request, load
from serving.server import Server, fit_bandit, serving
from submax.bandit.store import open_store

CONNECTIONS, SECONDS, LEARNED = 16, 6.0, 500
"""Connections, seconds for which they send requests, and decisions that versions learned from."""
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


class Service(NamedTuple):
    """What was measured of a service."""

    name: str
    load: Load
    cpu_us: float


def measure() -> list[Claim]:
    """Print the table and return the claims."""
    own, single = submax_over_http(), plain_sqlite(1)
    services = [*own, single, plain_sqlite(CONNECTIONS)]
    columns = ("service", "a second", "p50 ms", "p99 ms", "CPU µs")
    rows = [
        (name, f"{took.rate:.0f}", f"{took.p50_ms:.2f}", f"{took.p99_ms:.2f}", f"{cpu_us:.0f}")
        for name, took, cpu_us in services
    ]
    print_table(f"Services with {CONNECTIONS} connections", columns, rows)
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
        with open_store(path) as store:
            for name, (context, _) in REQUESTS.items():
                fit_bandit(store, name.replace(" ", "-"), ARMS, context, LEARNED)
        with serving(path) as server:
            return [measured(server, name, body) for name, (_, body) in REQUESTS.items()]


def measured(server: Server, name: str, body: dict[str, Any]) -> Service:
    """Load the server with requests to a bandit, and measure its processor time."""
    before, request = server.cpu, http_request(f"/bandits/{name.replace(' ', '-')}/decide", body)
    found = load(server.port, request, CONNECTIONS, SECONDS)
    spent = 1e6 * (server.cpu - before) / found.all_requests
    return Service(f"submax serve, SQLite, {name}", found, spent)


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
    return Service(name, found, 1e6 * spent / count)


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
