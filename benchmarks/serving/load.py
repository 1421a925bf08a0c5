"""Clients that send the same request again and again, each on a connection of its own.

``python load.py PORT REQUEST CONNECTIONS SECONDS`` sends requests and prints a line of JSON.
REQUEST is a file with the bytes of a request. The client is written by hand, because a client
library takes longer than the server.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

WARM_UP_SECONDS = 1.0
"""Requests that are answered before this time are not counted."""


class Load(NamedTuple):
    """Requests a second, their latency, and how many there were with those not counted."""

    rate: float
    p50_ms: float
    p99_ms: float
    all_requests: float


class Connection(asyncio.Protocol):
    """Sends a request, waits for the answer, and sends the next one until the time is over."""

    def __init__(self, request: bytes, end: float) -> None:
        self.answered: list[tuple[float, float]] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._request, self._end = request, end

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._send()

    def _send(self) -> None:
        self._buffer, self._sent = b"", time.perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if not complete(self._buffer):
            return
        now = time.perf_counter()
        self.answered.append((now, now - self._sent))
        if now < self._end:
            self._send()
        else:
            self.done.set_result(None)
            self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            last = self._buffer.decode(errors="replace")
            self.done.set_exception(RuntimeError(f"the connection was closed: {last}"))


def complete(buffer: bytes) -> bool:
    """Whether an answer of an HTTP server has come as a whole."""
    head, found, body = buffer.partition(b"\r\n\r\n")
    if not found:
        return False
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"a request failed: {buffer.decode(errors='replace')}")
    return len(body) >= int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])


async def send(port: str, file: str, connections: str, seconds: str) -> Load:
    """Send requests on some connections for some seconds; return what was measured."""
    loop, counted = asyncio.get_running_loop(), time.perf_counter() + WARM_UP_SECONDS
    request, end = Path(file).read_bytes(), counted + float(seconds)
    made = [
        await loop.create_connection(lambda: Connection(request, end), "127.0.0.1", int(port))
        for _ in range(int(connections))
    ]
    await asyncio.gather(*(one.done for _, one in made))
    answered = np.concatenate([one.answered for _, one in made])
    times = answered[answered[:, 0] >= counted, 1]
    p50, p99 = 1e3 * np.quantile(times, (0.5, 0.99))
    return Load(len(times) / float(seconds), float(p50), float(p99), len(answered))


def http_request(path: str, body: Any) -> bytes:
    """The bytes of a POST request."""
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


def load(port: int, request: bytes, connections: int, seconds: float) -> Load:
    """Load a port from a process of its own."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(request)
        file.flush()
        words = [str(port), file.name, str(connections), str(seconds)]
        done = subprocess.run(
            [sys.executable, __file__, *words], stdout=subprocess.PIPE, text=True, check=True
        )
    return Load(*json.loads(done.stdout))


if __name__ == "__main__":
    # The server uses uvloop as well, if it is installed.
    try:
        from uvloop import run
    except ImportError:
        run = asyncio.run
    print(json.dumps(run(send(*sys.argv[1:]))))
