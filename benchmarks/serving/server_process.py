"""What a server in a process of its own costs (Linux only)."""

import json
import time
from pathlib import Path
from typing import Any, NamedTuple, Self

from load.client_load import http_request
from load.clients import Target, cpu_seconds, run_clients
from load.submax_server import SubmaxServer
from measuring.process_tree import PROC, memory


class Served(NamedTuple):
    """Requests a second, milliseconds for 99 of 100, and the server's CPU microseconds for one."""

    rate: float
    p99_ms: float
    cpu_us: float


class ServerProcess(SubmaxServer):
    """``submax serve`` on a store, from its start to its end.

    ``ready_cpu`` and ``ready_seconds`` are the processor time and the time until it was ready,
    both with the start of Python and all imports.
    """

    def __init__(self, store: Path) -> None:
        self._begin = time.perf_counter()
        super().__init__(str(store))

    def __enter__(self) -> Self:
        super().__enter__()
        self.ready_seconds, self.ready_cpu = time.perf_counter() - self._begin, self.cpu
        return self

    @property
    def cpu(self) -> float:
        """The processor time of the server so far, in seconds."""
        return cpu_seconds([self.process.pid])

    @property
    def threads(self) -> int:
        """How many threads the server has now."""
        return len(list((PROC / str(self.process.pid) / "task").iterdir()))

    @property
    def memory(self) -> int:
        """The bytes that the server and its child processes have in memory now."""
        return memory(self.process.pid)

    def load(self, connections: int, seconds: float, path: str, body: Any) -> Served:
        """Send the same request again and again from another process."""
        before = self.cpu
        target = Target(self.port, "http", http_request(path, json.dumps(body).encode()))
        found = run_clients([target], connections, seconds)
        return Served(found.rate, found.p99_ms, 1e6 * (self.cpu - before) / found.all_requests)
