"""A server in a process of its own, and what it costs (Linux only)."""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from process_tree import PROC, memory

LOAD = Path(__file__).parent / "http_load.py"
TICKS = os.sysconf("SC_CLK_TCK")


class ServerProcess:
    """``submax serve`` on a store, from its start to its end.

    ``ready_cpu`` and ``ready_seconds`` are the processor time and the time until it was ready,
    both with the start of Python and all imports.
    """

    def __init__(self, store: Path) -> None:
        begin = time.perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "submax", "serve", str(store), "--port", "0"],
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self._process.stderr is not None
        self.port = int(self._process.stderr.readline().rpartition(":")[2])
        while not self._is_ready():
            time.sleep(0.05)
        self.ready_seconds, self.ready_cpu = time.perf_counter() - begin, self.cpu

    def _is_ready(self) -> bool:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=10).close()
            return True
        except (urllib.error.URLError, OSError):
            return False

    @property
    def cpu(self) -> float:
        """The processor time of the server so far, in seconds."""
        fields = (PROC / str(self._process.pid) / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    @property
    def threads(self) -> int:
        """How many threads the server has now."""
        return len(list((PROC / str(self._process.pid) / "task").iterdir()))

    @property
    def memory(self) -> int:
        """The bytes that the server and its child processes have in memory now."""
        return memory(self._process.pid)

    def load(self, connections: int, seconds: float, path: str, body: Any) -> dict[str, float]:
        """Send the same request again and again; see ``http_load.py``.

        The result has ``cpu``, the server's processor time for one request, as well.
        """
        before = self.cpu
        given = [str(self.port), str(connections), str(seconds), path, json.dumps(body)]
        done = subprocess.run(
            [sys.executable, str(LOAD), *given], capture_output=True, text=True, check=True
        )
        found: dict[str, float] = json.loads(done.stdout)
        return {**found, "cpu": (self.cpu - before) / found["requests"]}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.terminate()
        self._process.wait(20)
