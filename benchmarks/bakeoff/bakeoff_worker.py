"""Processes that play cells of the bake-off, one peer each, one cell at a time."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from measuring import HERE, SINGLE_THREAD, PeerUnavailableError


class Worker:
    """A process that runs the bake-off script of one peer with the Python that has this peer."""

    def __init__(self, peer: str, python: Path, data: Path) -> None:
        self.peer = peer
        environment = dict(os.environ)
        if python != Path(sys.executable):
            # Our own packages must not shadow those of the peer.
            environment.pop("PYTHONPATH", None)
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the worker
        self._process = subprocess.Popen(
            [str(python), str(HERE / "peers" / f"{peer}_bakeoff.py"), str(data)],
            env=environment | SINGLE_THREAD,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def play(self, cell: Mapping[str, Any]) -> dict[str, Any]:
        """The script's answer for a cell; raises PeerUnavailableError if the process ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(cell) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise PeerUnavailableError(self._last_error()) from error
        for line in self._process.stdout:
            # Some peers print messages of their own on the same stream.
            if line.startswith("{"):
                answer: dict[str, Any] = json.loads(line)
                return answer
        raise PeerUnavailableError(self._last_error())

    def close(self) -> None:
        """End the process: its script returns when its input ends."""
        self._process.communicate()
        self._errors.close()

    def _last_error(self) -> str:
        self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "no message")
