"""The open connections of a client that is used from an event loop."""

import asyncio
import ssl
import time

from submax.web.server.client.connecting.connection_pool import IDLE_SECONDS
from submax.web.server.client.connecting.stream_connection import StreamConnection
from submax.web.server.client.messages.address import Address


class StreamPool:
    """At most ``most`` connections; a request waits if all are in use."""

    def __init__(self, address: Address, most: int) -> None:
        self._address, self._free = address, asyncio.Semaphore(most)
        self._context = ssl.create_default_context() if address.secure else None
        self._idle: list[tuple[float, StreamConnection]] = []

    async def exchange(
        self, method: str, path: str, data: bytes | None, seconds: float
    ) -> tuple[int, bytes]:
        """Send a request, and return the status and the body of the answer."""
        async with asyncio.timeout(seconds), self._free:
            connection = await self._taken()
            try:
                found = await connection.exchange(method, path, data)
            except BaseException:
                connection.close()
                raise
            if connection.is_open:
                self._idle.append((time.monotonic(), connection))
            return found

    async def close(self) -> None:
        """Close all idle connections; the next request opens a new one."""
        idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()
        for _, connection in idle:
            await connection.wait_closed()

    async def _taken(self) -> StreamConnection:
        while self._idle:
            since, connection = self._idle.pop()
            if connection.is_open and time.monotonic() - since <= IDLE_SECONDS:
                return connection
            connection.close()
        return await StreamConnection.opened(self._address, self._context)
