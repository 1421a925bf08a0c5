"""The command ``serve`` in a process of its own, and fixtures that start it."""

import os
import socket
import subprocess
import sys
from threading import Thread

import httpx
import pytest
from waiting import wait_until

READY_SECONDS = 120.0
"""How long a server may take to start while other tests use the machine."""


class Server:
    """The command ``serve`` in a process of its own, with further variables in its environment."""

    def __init__(self, file, port: int = 0, *options: str, **variables: str):
        self.file = file
        command = [sys.executable, "-m", "submax", "serve", str(file), "--port", str(port)]
        environment = {**os.environ, **variables}
        self.process = subprocess.Popen(
            [*command, *map(str, options)], stderr=subprocess.PIPE, text=True, env=environment
        )
        self.first_line = self.process.stderr.readline()
        self.address = self.first_line.rpartition(" ")[2].strip()
        self._said: list[str] = []
        # What a server says must be read: in the pipe is room for some hundred lines.
        self._reader = Thread(target=lambda: self._said.append(self.process.stderr.read()))
        self._reader.start()
        self._http: httpx.Client | None = None

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def wait_ready(self) -> None:
        wait_until(self._is_ready, READY_SECONDS)

    def _is_ready(self) -> bool:
        try:
            return self.get("/readyz").status_code == 200
        except httpx.TransportError:
            return False

    def get(self, path: str, **options) -> httpx.Response:
        return self.request("GET", path, **options)

    def post(self, path: str, **options) -> httpx.Response:
        return self.request("POST", path, **options)

    def request(self, method: str, path: str, **options) -> httpx.Response:
        """Ask over a connection of its own.

        The client is kept: to read the certificates of all authorities for a new one takes 50 ms.
        """
        if self._http is None:
            alone = httpx.Limits(max_keepalive_connections=0)
            self._http = httpx.Client(base_url=self.address, verify=False, limits=alone, timeout=60)
        return self._http.request(method, path, **options)

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def ended(self) -> int:
        """Its exit status, once it has ended."""
        wait_until(lambda: self.process.poll() is not None)
        self._reader.join()
        return self.process.returncode

    @property
    def said(self) -> str:
        """What it said behind the first line, once it has ended."""
        return "".join(self._said)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.ended()
        self.process.stderr.close()
        if self._http is not None:
            self._http.close()


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


@pytest.fixture(scope="module")
def start_server():
    """Like ``serve``, for all tests of a module."""
    yield from _serving()


@pytest.fixture
def serve():
    """Start a server on a file, and wait until it is ready."""
    yield from _serving()


def _serving():
    started = []

    def serve(file, port: int = 0, *options: str, is_awaited: bool = True, **variables) -> Server:
        started.append(Server(file, port, *options, **variables))
        if is_awaited:
            started[-1].wait_ready()
        return started[-1]

    yield serve
    for server in started:
        server.close()
