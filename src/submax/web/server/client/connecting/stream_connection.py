"""One connection of an event loop to a server, in HTTP/1.1."""

import asyncio
import ssl
from typing import Self

from submax.web.server.client.messages.address import Address

LARGEST_ANSWER = 64_000_000
"""Bytes of an answer; 1000 decisions are less than a megabyte."""
LONGEST_LINE = 65_536
"""Bytes of the status line and the headers of an answer, and of the size of a chunk."""


class StreamConnection:
    """A connection that can send one request after the other while ``is_open``."""

    def __init__(
        self, address: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._address, self._reader, self._writer = address, reader, writer
        self._closed = False

    @classmethod
    async def opened(cls, address: Address, context: ssl.SSLContext | None) -> Self:
        """Connect to the server, with TLS if a context is given."""
        reader, writer = await asyncio.open_connection(
            address.host, address.port, ssl=context, limit=LONGEST_LINE
        )
        return cls(address, reader, writer)

    async def exchange(self, method: str, path: str, data: bytes | None) -> tuple[int, bytes]:
        """Send a request, and return the status and the body of the answer."""
        self._writer.write(self._head(method, path, data) + (data or b""))
        await self._writer.drain()
        status, headers = await self._answer_head()
        while 100 <= status < 200:
            status, headers = await self._answer_head()
        body = await self._answer_body(status, headers)
        if headers.get("connection", "").lower() == "close" or self._reader.at_eof():
            self.close()
        return status, body

    @property
    def is_open(self) -> bool:
        """Whether neither side has closed the connection."""
        return not (self._closed or self._reader.at_eof())

    def close(self) -> None:
        """Close the connection without waiting."""
        self._closed = True
        self._writer.close()

    async def wait_closed(self) -> None:
        """Wait until the connection is closed."""
        try:
            await self._writer.wait_closed()
        except OSError:
            # The other side was faster.
            return

    def _head(self, method: str, path: str, data: bytes | None) -> bytes:
        lines = [f"{method} {self._address.path}{path} HTTP/1.1", f"Host: {self._address.place}"]
        lines += [f"{name}: {value}" for name, value in self._address.headers.items()]
        if data is not None:
            lines.append(f"Content-Length: {len(data)}")
        return "\r\n".join([*lines, "", ""]).encode("latin-1")

    async def _answer_head(self) -> tuple[int, dict[str, str]]:
        head = await self._reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
        version, _, rest = first.partition(" ")
        if not version.startswith("HTTP/1.") or not rest[:3].isdigit():
            raise ConnectionError(f"an answer that is not HTTP: {first[:60]!r}")
        pairs = (line.partition(":") for line in lines)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        if version == "HTTP/1.0":
            headers.setdefault("connection", "close")
        return int(rest[:3]), headers

    async def _answer_body(self, status: int, headers: dict[str, str]) -> bytes:
        if status in (204, 304):
            return b""
        if "chunked" in headers.get("transfer-encoding", "").lower():
            return await self._chunks()
        length = headers.get("content-length")
        if length is None:
            # The end of the connection is the end of the answer.
            return await self._until_end()
        return await self._part(length, 10)

    async def _until_end(self) -> bytes:
        parts, size = [], 0
        while part := await self._reader.read(LONGEST_LINE):
            parts.append(part)
            size += len(part)
            if size > LARGEST_ANSWER:
                raise ConnectionError(f"an answer of more than {LARGEST_ANSWER} bytes")
        return b"".join(parts)

    async def _chunks(self) -> bytes:
        parts = []
        while True:
            size, _, _ = (await self._reader.readuntil(b"\r\n")).decode("latin-1").partition(";")
            part = await self._part(size.strip(), 16)
            if not part:
                break
            parts.append(part)
            await self._reader.readuntil(b"\r\n")
        while await self._reader.readuntil(b"\r\n") != b"\r\n":
            # Headers after the last chunk are not used.
            continue
        return b"".join(parts)

    async def _part(self, length: str, base: int) -> bytes:
        try:
            size = int(length, base)
        except ValueError as error:
            raise ConnectionError(f"an answer with the length {length[:20]!r}") from error
        if not 0 <= size <= LARGEST_ANSWER:
            raise ConnectionError(f"an answer of {size} bytes, more than {LARGEST_ANSWER}")
        return await self._reader.readexactly(size)
