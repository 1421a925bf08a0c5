"""One, two and four server processes on one PostgreSQL database, and what each decision costs.

``python benchmarks/serving/scaling.py --servers 1,2,4 --seconds 10 --out scaling.csv`` starts
PostgreSQL in a temporary folder, the servers, and a load of 16 connections for each server. Bandits
have 10 arms, 20 numbers of context and a fitted version of the default policy. It is measured with
one bandit that all servers share, with a bandit for each server, and with one SQLite file, which
one process serves. On a machine with few cores the load, the servers and the database
compete for them: the processor time of a decision is then the number to trust, not the rate.
"""

import argparse
import csv
import json
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

# The folder of the benchmarks, if the script is run by itself.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from load.client_load import http_request
from load.clients import Target, cpu_seconds, run_clients
from load.fitted_bandit import fit_bandit
from load.postgres_server import PostgresServer
from load.submax_server import SubmaxServer
from measuring.claim import print_table
from measuring.process_tree import family

ARMS = [f"arm-{number}" for number in range(10)]
CONTEXT = dict.fromkeys((f"x{number}" for number in range(20)), float)
NUMBERS = {name: 0.123 * number for number, name in enumerate(CONTEXT)}
BODY = json.dumps({"context": NUMBERS}).encode()
CONNECTIONS = 16
"""Connections to each server."""
SHARED, EACH = "one bandit", "a bandit for each server"


class Row(NamedTuple):
    """What was measured; processor time is in microseconds for one decision."""

    store: str
    servers: int
    bandits: str
    decides_per_s: float
    scaling: float
    p50_ms: float
    p99_ms: float
    server_cpu_us: float
    postgres_cpu_us: float
    client_cpu_us: float
    bytes_per_decision: float
    cores: int
    machine: str


def main(words: Sequence[str] | None = None) -> None:
    """Measure, write the file and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", default="1,2,4", help="numbers of servers, with commas")
    parser.add_argument("--seconds", type=float, default=10.0, help="length of each measurement")
    parser.add_argument("--out", type=Path, help="file of the results")
    given = parser.parse_args(words)
    rows = measured([int(one) for one in given.servers.split(",")], given.seconds)
    show(rows)
    if given.out is not None:
        with given.out.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(Row._fields)
            writer.writerows([[_text(value) for value in row] for row in rows])


def show(rows: Sequence[Row]) -> None:
    """Print what was measured."""
    title = f"Servers on one store, {rows[0].cores} cores; processor time of one decision in µs"
    columns = ("store, servers, bandits", "decides/s", "scaling", "p50 ms", "p99 ms")
    columns += ("server", "database", "client", "bytes")
    cells = [
        (f"{row.store}, {row.servers}, {row.bandits}", *(_text(value) for value in row[3:11]))
        for row in rows
    ]
    print_table(title, columns, cells)


def _text(value: float | str) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def measured(numbers: Sequence[int], seconds: float) -> list[Row]:
    """One row for SQLite, then one for each number of servers and each way to share bandits."""
    with tempfile.TemporaryDirectory() as folder:
        rows = [_sqlite(Path(folder) / "bench.db", seconds)]
    with PostgresServer() as postgres:
        for bandits in (SHARED, EACH):
            first = 0.0
            for servers in numbers:
                if servers == 1 and bandits == EACH:
                    rows.append(rows[1]._replace(bandits=EACH))
                    first = rows[1].decides_per_s
                    continue
                row = _postgres(postgres, servers, bandits, seconds)
                first = first or row.decides_per_s
                rows.append(row._replace(scaling=row.decides_per_s / first))
    return rows


def _sqlite(path: Path, seconds: float) -> Row:
    fit_bandit(path, "bandit-0", ARMS, CONTEXT)
    before = path.stat().st_size
    row = run(str(path), "SQLite", 1, SHARED, seconds, None)
    size = (path.stat().st_size - before) / row.bytes_per_decision
    return row._replace(bytes_per_decision=size)


def _postgres(postgres: PostgresServer, servers: int, bandits: str, seconds: float) -> Row:
    database = f"bench_{servers}_{'shared' if bandits == SHARED else 'each'}"
    address = postgres.create(database)
    for number in range(servers):
        fit_bandit(address, f"bandit-{number}", ARMS, CONTEXT)
    before = postgres.size(database)
    row = run(address, "PostgreSQL", servers, bandits, seconds, postgres.process.pid)
    size = (postgres.size(database) - before) / row.bytes_per_decision
    return row._replace(bytes_per_decision=size)


def run(
    address: str, store: str, servers: int, bandits: str, seconds: float, database: int | None
) -> Row:
    """Start servers and load; the field ``bytes_per_decision`` holds the number of decisions."""
    with ExitStack() as stack:
        started = [stack.enter_context(SubmaxServer(address)) for _ in range(servers)]
        targets = []
        for number, server in enumerate(started):
            name = f"bandit-{0 if bandits == SHARED else number}"
            request = http_request(f"/bandits/{name}/decide", BODY)
            targets.append(Target(server.port, "http", request))
        processes = [server.process.pid for server in started]
        before = cpu_seconds(processes), _cpu_of_tree(database)
        load = run_clients(targets, CONNECTIONS, seconds)
        servers_cpu = cpu_seconds(processes) - before[0]
        database_cpu = _cpu_of_tree(database) - before[1]
    cost = 1e6 / load.all_requests
    return Row(
        store,
        servers,
        bandits,
        load.rate,
        1.0,
        load.p50_ms,
        load.p99_ms,
        servers_cpu * cost,
        database_cpu * cost,
        load.cpu_s * cost,
        load.all_requests,
        os.cpu_count() or 1,
        f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}",
    )


def _cpu_of_tree(process: int | None) -> float:
    return 0.0 if process is None else cpu_seconds(sorted(family(process)))


if __name__ == "__main__":
    main()
