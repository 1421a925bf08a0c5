"""A server of a thousand bandits: its start, and what it costs while nobody asks (Linux).

Limits are processor time, which depends less than wall time on what else runs on the machine.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import numpy as np

import submax
from measuring import Claim, at_most, cpu_seconds, family, megabytes
from submax.bandit.store import Store, open_store

BANDITS, SETTLING_SECONDS, IDLE_SECONDS = 1000, 10.0, 30.0
"""Bandits in one server; seconds for which it settles after its start, and is then left alone."""
READY_SECONDS = 60.0


class Server(NamedTuple):
    """``submax serve`` that is ready, and what its start took."""

    process: int
    port: int
    ready_seconds: float
    ready_cpu: float

    @property
    def cpu(self) -> float:
        """The processor time of the server so far, in seconds."""
        return cpu_seconds(self.process)


@contextmanager
def serving(store: Path) -> Iterator[Server]:
    """Start ``submax serve``, wait until it is ready, and end it in the end."""
    # A limit on requests is not what is measured.
    command = [sys.executable, "-m", "submax", "serve", str(store), "--port", "0", "--rate", "1e9"]
    begin = time.perf_counter()
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        if ":" not in first:
            raise RuntimeError(f"the server does not start: {first}")
        port = int(first.rpartition(":")[2])
        try:
            while not is_ready(port):
                if time.perf_counter() > begin + READY_SECONDS:
                    raise RuntimeError(f"the server was not ready within {READY_SECONDS:.0f} s")
                time.sleep(0.05)
            yield Server(process.pid, port, time.perf_counter() - begin, cpu_seconds(process.pid))
        finally:
            process.terminate()
            # Reading to the end keeps a server that logs much from waiting for a full pipe.
            process.communicate(timeout=30)


def is_ready(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/readyz").is_success
    except httpx.TransportError:
        return False


def fit_bandit(
    store: Store, name: str, actions: Sequence[str], context: dict[str, Any], decisions: int
) -> None:
    """Declare a bandit and fit its first version to decisions in random contexts.

    ``context`` has the type ``float`` or a list of values for each variable. The last action is the
    best one everywhere.
    """
    rng = np.random.default_rng(0)

    def drawn(kind: Any) -> Any:
        return float(rng.normal()) if kind is float else str(rng.choice(kind))

    requests = [
        {"context": {variable: drawn(kind) for variable, kind in context.items()}}
        for _ in range(decisions)
    ]
    options: dict[str, Any] = {"reward_wait": 0.0, "background": False}
    bandit = submax.open(store, name=name, actions=actions, context=context, **options)
    made = bandit.decide_many(requests)
    bandit.reward_many([{"id": one.id, "value": float(one.action == actions[-1])} for one in made])
    if not bandit.refit():
        raise RuntimeError("no version was fitted, so nothing can be measured")
    bandit.stop()


def measure() -> list[Claim]:
    """Start a server of a thousand fitted bandits, leave it alone, and return the claims."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "many.db"
        with open_store(path) as store:
            for number in range(BANDITS):
                fit_bandit(store, f"b{number}", list("ABC"), {}, decisions=20)
        with serving(path) as server:
            time.sleep(SETTLING_SECONDS)
            before = server.cpu
            time.sleep(IDLE_SECONDS)
            idle = (server.cpu - before) / IDLE_SECONDS
            threads = len(list(Path(f"/proc/{server.process}/task").iterdir()))
            memory = megabytes(family(server.process))
    print(f"{BANDITS} bandits were ready after {server.ready_seconds:.1f} s, in {memory:.0f} MB")
    return [
        at_most(f"{BANDITS} bandits are ready, CPU time", server.ready_cpu, 10, "s"),
        at_most("the same, idle, share of a core", 100 * idle, 3, "%"),
        at_most("the same, threads", threads, 30),
    ]
