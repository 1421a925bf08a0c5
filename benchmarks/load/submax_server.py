"""A process that serves a store over HTTP."""

import subprocess
import sys
import time
import urllib.error
import urllib.request
from types import TracebackType
from typing import Self

READY_SECONDS = 60.0


class SubmaxServer:
    """``submax serve``, which is ready at the beginning of a ``with`` and ended at its end."""

    def __init__(self, store: str) -> None:
        # A limit on requests is not what is measured.
        words = [sys.executable, "-m", "submax", "serve", store, "--port", "0", "--rate", "1e9"]
        self.process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)

    def __enter__(self) -> Self:
        assert self.process.stderr is not None
        first = self.process.stderr.readline()
        if ":" not in first:
            raise RuntimeError(f"the server does not start: {first}")
        self.port = int(first.rpartition(":")[2])
        self._wait()
        return self

    def _wait(self) -> None:
        end = time.monotonic() + READY_SECONDS
        while time.monotonic() < end:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz"):
                    return
            except (urllib.error.URLError, OSError):
                time.sleep(0.05)
        raise RuntimeError(f"the server was not ready within {READY_SECONDS:.0f} seconds")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.process.terminate()
        # Reading to the end keeps a server that logs much from waiting for a full pipe.
        self.process.communicate(timeout=30)
