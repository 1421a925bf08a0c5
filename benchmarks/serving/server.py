"""A server of a thousand bandits: its start, and what it costs while nobody asks (Linux).

Limits are processor time, which depends less than wall time on what else runs on the machine.
"""

import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np

import submax
from measuring import Claim, at_most, cpu_seconds, family, megabytes
from submax.bandit.store import open_store

BANDITS, SETTLING_SECONDS, IDLE_SECONDS = 1000, 10.0, 30.0
"""Bandits in one server; seconds for which it settles after its start, and is then left alone."""
READY_SECONDS = 60.0
LEARNED = 500
"""Decisions that the version under load has learned from, so that its policy decides."""


class Server:
    """``submax serve``, which is ready at the beginning of a ``with`` and ended at its end."""

    def __init__(self, store: Path) -> None:
        # A limit on requests is not what is measured.
        words = [sys.executable, "-m", "submax", "serve", str(store), "--port", "0"]
        self._begin = time.perf_counter()
        self.process = subprocess.Popen(
            [*words, "--rate", "1e9"], stderr=subprocess.PIPE, text=True
        )

    def __enter__(self) -> Self:
        assert self.process.stderr is not None
        first = self.process.stderr.readline()
        if ":" not in first:
            raise RuntimeError(f"the server does not start: {first}")
        self.port = int(first.rpartition(":")[2])
        while not self._ready():
            if time.perf_counter() > self._begin + READY_SECONDS:
                raise RuntimeError(f"the server was not ready within {READY_SECONDS:.0f} seconds")
            time.sleep(0.05)
        self.ready_seconds, self.ready_cpu = time.perf_counter() - self._begin, self.cpu
        return self

    def _ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz"):
                return True
        except (urllib.error.URLError, OSError):
            return False

    @property
    def cpu(self) -> float:
        """The processor time of the server so far, in seconds."""
        return cpu_seconds([self.process.pid])

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.terminate()
        # Reading to the end keeps a server that logs much from waiting for a full pipe.
        self.process.communicate(timeout=30)


def fit_bandit(store: Path, name: str, actions: Sequence[str], context: dict[str, Any]) -> None:
    """Declare a bandit and fit its first version to decisions in random contexts.

    ``context`` has the type ``float`` or a list of values for each variable. The fourth action is
    the best one everywhere.
    """
    rng = np.random.default_rng(0)

    def drawn(kind: Any) -> Any:
        return float(rng.normal()) if kind is float else str(rng.choice(kind))

    requests = [
        {"context": {variable: drawn(kind) for variable, kind in context.items()}}
        for _ in range(LEARNED)
    ]
    with submax.open(
        store, name=name, actions=actions, context=context, reward_wait=0.0, background=False
    ) as bandit:
        made = bandit.decide_many(requests)
        bandit.reward_many(
            [{"id": one.id, "value": float(one.action == actions[3])} for one in made]
        )
        if not bandit.refit():
            raise RuntimeError("no version was fitted, so nothing can be measured")


def measure() -> list[Claim]:
    """Start a server of a thousand fitted bandits, leave it alone, and return the claims."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "many.db"
        with open_store(path) as store:
            for number in range(BANDITS):
                bandit = submax.open(
                    store, name=f"b{number}", actions=list("ABC"), reward_wait=0, background=False
                )
                made = bandit.decide_many([{}] * 20)
                bandit.reward_many([{"id": one.id, "value": 1.0} for one in made])
                bandit.refit()
                bandit.stop()
        with Server(path) as server:
            time.sleep(SETTLING_SECONDS)
            before = server.cpu
            time.sleep(IDLE_SECONDS)
            idle = (server.cpu - before) / IDLE_SECONDS
            threads = len(list(Path(f"/proc/{server.process.pid}/task").iterdir()))
            memory = megabytes(family(server.process.pid))
    print(f"{BANDITS} bandits were ready after {server.ready_seconds:.1f} s, in {memory:.0f} MB")
    return [
        at_most(f"{BANDITS} bandits are ready, CPU time", server.ready_cpu, 10, "s"),
        at_most("the same, idle, share of a core", 100 * idle, 3, "%"),
        at_most("the same, threads", threads, 30),
    ]
