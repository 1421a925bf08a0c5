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


async def ask(port: str, request: bytes, end: float) -> list[tuple[float, float]]:
    """Repeat a request on one connection; return when each was answered, and after how long."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(port))
    answered, now = [], 0.0
    while now < end:
        sent = time.perf_counter()
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        if not head.startswith(b"http/1.1 200"):
            raise RuntimeError(f"a request failed: {head.decode(errors='replace')}")
        length = head.partition(b"content-length: ")[2].partition(b"\r")[0]
        await reader.readexactly(int(length))
        now = time.perf_counter()
        answered.append((now, now - sent))
    writer.close()
    return answered


async def send(port: str, file: str, connections: str, seconds: str) -> Load:
    """Send requests on some connections for some seconds; return what was measured."""
    request, counted = Path(file).read_bytes(), time.perf_counter() + WARM_UP_SECONDS
    asking = (ask(port, request, counted + float(seconds)) for _ in range(int(connections)))
    answered = np.concatenate(await asyncio.gather(*asking))
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
