"""The open connections of a client that is used from threads."""

import http.client
import os
import selectors
import time
from threading import Lock

from submax.web.server.client.messages.address import Address

IDLE_SECONDS = 30.0
"""After so long an idle connection is not used again: the server closes it after 75 seconds."""


class ConnectionPool:
    """Connections that are open and that no thread uses now.

    A process that was forked begins with an empty pool, because two processes must not write to
    the same connection.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._lock, self._process = Lock(), os.getpid()
        self._idle: list[tuple[float, http.client.HTTPConnection]] = []

    def exchange(
        self, method: str, path: str, data: bytes | None, seconds: float
    ) -> tuple[int, bytes]:
        """Send a request, and return the status and the body of the answer."""
        connection = self._taken(seconds)
        try:
            connection.request(method, self._address.path + path, data, self._address.headers)
            response = connection.getresponse()
            status, answer = response.status, response.read()
        except BaseException:
            connection.close()
            raise
        with self._lock:
            self._idle.append((time.monotonic(), connection))
        return status, answer

    def close(self) -> None:
        """Close all idle connections; the next request opens a new one."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def _taken(self, seconds: float) -> http.client.HTTPConnection:
        if self._process != os.getpid():
            self._lock, self._process, self._idle = Lock(), os.getpid(), []
        with self._lock:
            since, connection = self._idle.pop() if self._idle else (0.0, None)
        if connection is None or time.monotonic() - since > IDLE_SECONDS or _is_stale(connection):
            if connection is not None:
                connection.close()
            kind = (
                http.client.HTTPSConnection if self._address.secure else http.client.HTTPConnection
            )
            return kind(self._address.host, self._address.port, timeout=seconds)
        connection.timeout = seconds
        if connection.sock is not None:
            connection.sock.settimeout(seconds)
        return connection


def _is_stale(connection: http.client.HTTPConnection) -> bool:
    """Whether the other side has closed an idle connection, or sent what nobody asked for."""
    if connection.sock is None:
        return True
    with selectors.DefaultSelector() as selector:
        selector.register(connection.sock, selectors.EVENT_READ)
        return bool(selector.select(0))
