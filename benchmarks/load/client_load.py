"""Clients that send the same request again and again, each on a connection of its own.

``python client_load.py PROTOCOL PORT REQUEST CONNECTIONS SECONDS`` waits for a line on its standard
input, then sends requests, and prints a line of JSON: how many were answered, the processor time of
the clients, and the milliseconds within which each percent of the requests was answered. PROTOCOL
is ``http`` or ``lines``, REQUEST a file with the bytes of a request.

The client is written by hand, because a client library takes longer than the server. It uses uvloop
if that is installed, as the server does.
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

WARM_UP_SECONDS = 1.0
"""Requests that are answered before this time are not counted."""
Complete = Callable[[bytes], bool]
"""Whether the bytes are a whole answer; raises a RuntimeError if the answer is an error."""


class Connection(asyncio.Protocol):
    """Sends a request, waits for the answer, and sends the next one until the time is over."""

    def __init__(self, request: bytes, complete: Complete, begin: float, end: float) -> None:
        self.times: list[float] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._request, self._complete = request, complete
        self._begin, self._end = begin, end
        self._buffer = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._send()

    def _send(self) -> None:
        self._buffer, self._sent = b"", time.perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        try:
            if not self._complete(self._buffer):
                return
        except RuntimeError as error:
            self._finish(error)
            return
        now = time.perf_counter()
        if now >= self._end:
            self._finish(None)
            return
        if now >= self._begin:
            self.times.append(now - self._sent)
        self._send()

    def connection_lost(self, error: Exception | None) -> None:
        self._finish(RuntimeError("the connection was closed"))

    def _finish(self, error: Exception | None) -> None:
        if self.done.done():
            return
        if error is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(error)
        self._transport.close()


def http_complete(buffer: bytes) -> bool:
    """Whether an answer of an HTTP server has come as a whole."""
    head, found, body = buffer.partition(b"\r\n\r\n")
    if not found:
        return False
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
    if len(body) < length:
        return False
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"a request failed: {buffer.decode(errors='replace')}")
    return True


def lines_complete(buffer: bytes) -> bool:
    """Whether an answer has come that ends with an empty line."""
    return buffer.endswith(b"\n\n")


PROTOCOLS: dict[str, Complete] = {"http": http_complete, "lines": lines_complete}


def http_request(path: str, body: bytes) -> bytes:
    """The bytes of a POST request."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def load(
    port: int, request: bytes, complete: Complete, connections: int, seconds: float
) -> dict[str, Any]:
    """Send requests on some connections for some seconds; return what was measured."""
    loop, start = asyncio.get_running_loop(), time.perf_counter()
    begin, end = start + WARM_UP_SECONDS, start + WARM_UP_SECONDS + seconds
    every = []
    for _ in range(connections):
        _, one = await loop.create_connection(
            lambda: Connection(request, complete, begin, end), "127.0.0.1", port
        )
        every.append(one)
    await asyncio.gather(*(one.done for one in every))
    times = np.concatenate([one.times for one in every])
    percentiles = 1e3 * np.quantile(times, np.linspace(0.0, 1.0, 101))
    return {
        "requests": len(times),
        "seconds": seconds,
        "cpu_s": time.process_time(),
        "percentiles_ms": percentiles.round(4).tolist(),
    }


def main(protocol: str, port: str, request: str, connections: str, seconds: str) -> None:
    work = load(
        int(port),
        Path(request).read_bytes(),
        PROTOCOLS[protocol],
        int(connections),
        float(seconds),
    )
    sys.stdin.readline()
    try:
        import uvloop

        print(json.dumps(uvloop.run(work)))
    except ImportError:
        print(json.dumps(asyncio.run(work)))


if __name__ == "__main__":
    main(*sys.argv[1:])
