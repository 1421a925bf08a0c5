"""submax over HTTP, plain SQLite and Vowpal Wabbit's daemon, with 16 connections, in one run.

The three promise different things, which the table says beside the rates. The problem is the same:
ten arms, and a context of a country and two numbers. Plain SQLite only stores; it is the rate of
durable appends that a store on this disk can have, one transaction for each row, and one for
sixteen rows, as if sixteen callers shared it. ``--out services.csv`` also writes the table to a
file.
"""

import argparse
import csv
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

# The folder of the benchmarks, if the script is run by itself.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from load.client_load import http_request
from load.clients import Load, Target, cpu_seconds, run_clients
from load.fitted_bandit import fit_bandit
from load.free_port import free_port
from load.submax_server import SubmaxServer
from measuring.claim import Claim, print_claims, print_table
from measuring.peer_runs import HERE, PeerUnavailableError, install
from measuring.process_tree import family

CONNECTIONS, SECONDS = 16, 6.0
ARMS = [f"arm-{number}" for number in range(10)]
CONTEXT: dict[str, Any] = {"country": ["fr", "de", "us"], "age": float, "visits": float}
ONE_CONTEXT = {"country": "fr", "age": 31, "visits": 4}
BODY = json.dumps({"context": ONE_CONTEXT}).encode()
ROW = b"x" * 200
"""A row of plain SQLite; a decision of submax has about this many bytes."""
VW_CONTEXT = "shared |s country=fr age:31 visits:4"
STARTED_SECONDS = 20.0


class Service(NamedTuple):
    """What was measured of a service, and what the service promises."""

    name: str
    rate: float
    p50_ms: float
    p99_ms: float
    cpu_us: float
    durable: str
    propensity: str
    learns: str


def measure(out: Path | None = None) -> list[Claim]:
    """Print the table, write it to a file if one is named, and return the claims."""
    own, stored = over_http(), [plain_sqlite(1), plain_sqlite(CONNECTIONS)]
    peers = vowpal_wabbit()
    services = [own, *stored, *peers]
    show(services)
    if out is not None and not peers:
        raise RuntimeError(f"Vowpal Wabbit does not run here, so that {out} was not written")
    if out is not None:
        with out.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(Service._fields)
            writer.writerows(_texts(one) for one in services)
    fast, soon = own.rate >= 5000, own.p99_ms <= 15
    return [
        Claim("durable decides over HTTP a second", f"{own.rate:.0f}", "at least 5000", fast),
        Claim("the same, p99, ms", f"{own.p99_ms:.1f}", "at most 15", soon),
    ]


def show(services: list[Service]) -> None:
    """Print rates and promises."""
    columns = ("service", "a second", "p50 ms", "p99 ms", "CPU µs")
    columns += ("durable", "propensity", "learns")
    rows = [_texts(one) for one in services]
    print_table(f"Services with {CONNECTIONS} connections", columns, rows)


def _texts(one: Service) -> tuple[str, ...]:
    numbers = f"{one.rate:.0f}", f"{one.p50_ms:.2f}", f"{one.p99_ms:.2f}", f"{one.cpu_us:.0f}"
    return one.name, *numbers, *one[5:]


def over_http() -> Service:
    """Durable decisions of submax with its default policy in a SQLite file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.db"
        fit_bandit(path, "bench", ARMS, CONTEXT)
        with SubmaxServer(str(path)) as server:
            target = Target(server.port, "http", http_request("/bandits/bench/decide", BODY))
            before = cpu_seconds([server.process.pid])
            load = run_clients([target], CONNECTIONS, SECONDS)
            spent = cpu_seconds([server.process.pid]) - before
    return _service("submax serve, SQLite", load, spent, "yes", "exact, logged", "in versions")


def _service(name: str, load: Load, spent: float, *promises: str) -> Service:
    durable, propensity, learns = promises
    cost = 1e6 * spent / load.all_requests
    return Service(name, load.rate, load.p50_ms, load.p99_ms, cost, durable, propensity, learns)


def plain_sqlite(rows: int) -> Service:
    """Appends to a table by 16 connections, in transactions of so many rows, synced fully."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plain.db"
        with _connected(path) as connection:
            connection.execute("CREATE TABLE log (number INTEGER PRIMARY KEY, body BLOB)")
        connection.close()
        end, before = time.perf_counter() + SECONDS, time.process_time()
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            working = [pool.submit(_append, path, rows, end) for _ in range(CONNECTIONS)]
            times = np.concatenate([one.result() for one in working])
        spent = time.process_time() - before
    count = rows * len(times)
    name = "plain SQLite, a commit each" if rows == 1 else f"plain SQLite, {rows} rows a commit"
    p50, p99 = 1e3 * np.quantile(times, (0.5, 0.99))
    return Service(
        name, count / SECONDS, float(p50), float(p99), 1e6 * spent / count, "yes", "none", "no"
    )


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, timeout=60.0)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def _append(path: Path, rows: int, end: float) -> list[float]:
    """The seconds of each transaction."""
    connection, times = _connected(path), []
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
    return [
        _daemon(python, "decide", None, "when told"),
        _daemon(python, "learn", 3, "at once"),
    ]


def _daemon(python: Path, what: str, taken: int | None, learns: str) -> Service:
    port = free_port()
    script = HERE / "peers" / "vowpalwabbit_daemon.py"
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    daemon = subprocess.Popen(
        [str(python), str(script), str(port), str(CONNECTIONS)],
        env=environment,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        _wait(daemon.pid)
        processes = sorted(family(daemon.pid))
        before = cpu_seconds(processes)
        load = run_clients([Target(port, "lines", _example(taken))], CONNECTIONS, SECONDS)
        spent = cpu_seconds(processes) - before
    finally:
        # The daemon replaces processes that end, so that all of them are ended at once.
        os.killpg(daemon.pid, signal.SIGKILL)
        daemon.wait()
    name = f"Vowpal Wabbit's daemon, {what}"
    return _service(name, load, spent, "no", "6 digits; the caller draws", learns)


def _wait(process: int) -> None:
    """Wait until the daemon has all of its processes, which then accept connections."""
    end = time.monotonic() + STARTED_SECONDS
    while len(family(process)) <= CONNECTIONS:
        if time.monotonic() > end:
            raise RuntimeError("Vowpal Wabbit's daemon does not start")
        time.sleep(0.05)


def _example(taken: int | None) -> bytes:
    """An example in the text format; with an action taken it has a label, and is learned from."""
    lines = [f"|a arm={number}" for number in range(len(ARMS))]
    if taken is not None:
        lines[taken] = f"0:-1:{1 / len(ARMS)} {lines[taken]}"
    return ("\n".join([VW_CONTEXT, *lines]) + "\n\n").encode()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, help="file of the results")
    print_claims(measure(parser.parse_args().out))
