"""Sends requests to a server over several connections; prints the rate and the times of answers.

It is a process of its own, so that its work is not counted as that of the server. It speaks HTTP by
hand, because clients take longer than the server.

    python benchmarks/http_load.py PORT CONNECTIONS SECONDS PATH BODY
"""

import asyncio
import json
import sys
import time

HEAD_END, LENGTH = b"\r\n\r\n", b"content-length: "


class LoadConnection(asyncio.Protocol):
    """One connection that sends the next request when the last one was answered."""

    def __init__(self, request: bytes, end: float) -> None:
        self.times: list[float] = []
        self.done = asyncio.get_running_loop().create_future()
        self._request, self._end, self._received = request, end, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._send()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, ended, body = self._received.partition(HEAD_END)
        if not ended or len(body) < int(head.lower().partition(LENGTH)[2].partition(b"\r")[0]):
            return
        self.times.append(time.perf_counter() - self._begin)
        if not head.startswith(b"HTTP/1.1 200"):
            self.done.set_exception(RuntimeError(self._received.decode()))
        elif time.perf_counter() >= self._end:
            self._transport.close()
        else:
            self._send()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_result(None)

    def _send(self) -> None:
        self._received, self._begin = b"", time.perf_counter()
        self._transport.write(self._request)


async def load(port: int, connections: int, seconds: float, path: str, body: str) -> list[float]:
    """The seconds that each request took."""
    data = body.encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(data)}\r\n\r\n"
    )
    request, loop = head.encode() + data, asyncio.get_running_loop()
    end = time.perf_counter() + seconds
    made = [
        (await loop.create_connection(lambda: LoadConnection(request, end), "127.0.0.1", port))[1]
        for _ in range(connections)
    ]
    await asyncio.gather(*[one.done for one in made])
    return [each for one in made for each in one.times]


def main() -> None:
    port, connections, seconds, path, body = sys.argv[1:]
    begin = time.perf_counter()
    times = sorted(asyncio.run(load(int(port), int(connections), float(seconds), path, body)))
    found = {
        "requests": len(times),
        "rate": len(times) / (time.perf_counter() - begin),
        "median": times[len(times) // 2],
        "p99": times[int(0.99 * len(times))],
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
