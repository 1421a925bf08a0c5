"""The server under load: durable decisions, and a thousand bandits.

The rate depends on the machine and on what else runs on it. The processor time of the server for
one request depends less on it, and one core cannot answer more requests a second than its inverse.
"""

import os

# Set before numpy is imported, because the benchmark measures a single core.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
import tempfile
import time
from pathlib import Path

import submax

# The folder of the benchmarks, if the script is run by itself.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from load.fitted_bandit import fit_bandit
from measuring.claim import Claim, print_claims, print_table
from measuring.process_tree import readable
from serving.server_process import ServerProcess
from submax.bandit.store import open_store

ARMS = [f"arm-{number}" for number in range(10)]
NUMBERS = [f"x{number}" for number in range(20)]
CONTEXT = dict.fromkeys(NUMBERS, float)
ONE_CONTEXT = {name: 0.1 * place for place, name in enumerate(NUMBERS)}
CONNECTIONS, SECONDS = 16, 6.0
"""The number of HTTP connections, and the seconds for which they send requests."""
BANDITS, IDLE_SECONDS = 1000, 30.0
"""Bandits in one server, and the seconds for which it is left alone."""


def measure() -> list[Claim]:
    """Print all numbers and return the claims."""
    # What a server costs is read from /proc.
    return over_http() + thousand_bandits() if readable() else []


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
        store = open_store(path)
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
            # Sums for pages are brought up to date after the start.
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


if __name__ == "__main__":
    print_claims(measure())
