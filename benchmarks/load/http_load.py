"""Clients that send the same request again and again, each on a connection of its own.

``python http_load.py PORT PATH BODY CONNECTIONS SECONDS`` prints a line of JSON: the number of
requests, the processor time of the clients, and the milliseconds within which each percent of the
requests was answered. It waits for a line on its standard input before it begins.

The client is written by hand, because a client library takes longer than the server. It uses uvloop
if that is installed, as the server does.
"""

import asyncio
import json
import sys
import time
from typing import Any

import numpy as np

HEAD_END = b"\r\n\r\n"
LENGTH = b"content-length: "
WARM_UP_SECONDS = 1.0
"""Requests that are answered before this time are not counted."""


class Connection(asyncio.Protocol):
    """Sends a request, waits for the answer, and sends the next one until the time is over."""

    def __init__(self, request: bytes, begin: float, end: float) -> None:
        self.times: list[float] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._request, self._begin, self._end = request, begin, end
        self._buffer = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._send()

    def _send(self) -> None:
        self._sent = time.perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, body = self._buffer.partition(HEAD_END)
        if not found:
            return
        length = int(head.lower().partition(LENGTH)[2].partition(b"\r")[0])
        if len(body) < length:
            return
        if not head.startswith(b"HTTP/1.1 200"):
            self._fail(head.partition(b"\r")[0] + b": " + body)
            return
        self._buffer, now = b"", time.perf_counter()
        if now >= self._end:
            self._transport.close()
            self.done.set_result(None)
            return
        if now >= self._begin:
            self.times.append(now - self._sent)
        self._send()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self._fail(b"the connection was closed")

    def _fail(self, reason: bytes) -> None:
        if not self.done.done():
            self.done.set_exception(RuntimeError(f"a request failed: {reason.decode()}"))
        self._transport.close()


def request_of(path: str, body: bytes) -> bytes:
    """The bytes of a POST request."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def load(port: int, request: bytes, connections: int, seconds: float) -> dict[str, Any]:
    """Send requests on some connections for some seconds; return what was measured."""
    loop, start = asyncio.get_running_loop(), time.perf_counter()
    begin, end = start + WARM_UP_SECONDS, start + WARM_UP_SECONDS + seconds
    every = [
        (await loop.create_connection(lambda: Connection(request, begin, end), "127.0.0.1", port))[
            1
        ]
        for _ in range(connections)
    ]
    await asyncio.gather(*(one.done for one in every))
    times = np.concatenate([one.times for one in every])
    percentiles = 1e3 * np.quantile(times, np.linspace(0.0, 1.0, 101))
    return {
        "requests": len(times),
        "seconds": seconds,
        "cpu_s": time.process_time(),
        "percentiles_ms": percentiles.round(4).tolist(),
    }


def main(port: str, path: str, body: str, connections: str, seconds: str) -> None:
    request = request_of(path, body.encode())
    sys.stdin.readline()
    work = load(int(port), request, int(connections), float(seconds))
    try:
        import uvloop

        print(json.dumps(uvloop.run(work)))
    except ImportError:
        print(json.dumps(asyncio.run(work)))


if __name__ == "__main__":
    main(*sys.argv[1:])
