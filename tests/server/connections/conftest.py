"""Connections as bytes, and a server in this process whose limits a test chooses."""

import re
import socket
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from threading import Thread

import pytest
import uvicorn
from waiting import wait_until

from submax.live.bandits.open import open_bandit
from submax.live.store.memory_store import MemoryStore
from submax.web.server import run
from submax.web.server.connections import limited_protocol
from submax.web.server.interface.request_pipeline import RequestPipeline
from submax.web.server.metrics import Metrics
from submax.web.server.service import Service

GET = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
METRICS = b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"


class Connections:
    """Opens connections to the port of a server."""

    def __init__(self, port: int):
        self.port = port
        self._opened = ExitStack()

    def connect(self, sent: bytes = b"") -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        self._opened.enter_context(connection).sendall(sent)
        return connection

    def ask(self, sent: bytes) -> bytes:
        """All that is answered until the server closes the connection."""
        return everything(self.connect(sent))

    def closed(self, reason: str) -> float:
        """How many connections were closed for a reason, as the metrics say."""
        line = rb'submax_connections_closed_total{reason="%s"} (.+)' % reason.encode()
        found = re.search(line, self.ask(METRICS))
        return float(found[1]) if found else 0.0

    def close(self) -> None:
        self._opened.close()


def everything(connection: socket.socket) -> bytes:
    """All that the server sends until it closes the connection; empty if it is cut off."""
    received = b""
    try:
        while part := connection.recv(65_536):
            received += part
    except ConnectionResetError:
        pass
    return received


class Limited(Connections):
    """A server in a thread of this process, set up as the command ``serve`` does it."""

    def __init__(self, service: Service):
        listening = socket.create_server(("127.0.0.1", 0))
        super().__init__(listening.getsockname()[1])
        self.keys = service.keys
        pipeline = RequestPipeline(service, 1e6, Metrics(service.opened))
        self._server = uvicorn.Server(run.configuration_of(service, pipeline, []))
        self._thread = Thread(target=partial(self._server.run, sockets=[listening]))
        self._thread.start()
        wait_until(lambda: service.ready)

    def close(self) -> None:
        super().close()
        self._server.should_exit = True
        self._thread.join()


@pytest.fixture
def limited(trial, monkeypatch):
    """Start a server with the bandit ``page``, room for some connections, and short deadlines."""
    started = []

    def limited(places: int = 100, seconds: float = 60.0, most_bytes: int = 1_000_000) -> Limited:
        monkeypatch.setattr(run, "MAX_CONNECTIONS", places)
        for name in ("HEAD", "BODY"):
            phase = replace(getattr(limited_protocol, name), seconds=seconds, most_bytes=most_bytes)
            monkeypatch.setattr(limited_protocol, name, phase)
        store = MemoryStore()
        open_bandit(store, name="page", actions=["A"], background=False)
        started.append(Limited(Service(store, trial)))
        return started[-1]

    yield limited
    for server in started:
        server.close()
