"""The HTTP protocol of uvicorn, with limits on the size and the duration of requests."""

import asyncio
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from submax.web.server.connections.connection_table import ConnectionTable
from submax.web.server.connections.phase import BODY, HEAD, Phase
from submax.web.server.interface.responses import JSON, failure_body

MOST_PIPELINED = 100
"""Requests that a client may send before it has the answer to the first: a packet of 64 kB could
hold thousands, each of which takes up far more memory than bytes."""


class LimitedProtocol(HttpToolsProtocol):
    """A connection whose requests are limited before anybody reads them.

    uvicorn's own limit on the head, ``h11_max_incomplete_event_size``, is not for the parser
    httptools, and uvicorn has no deadline for heads and bodies. The parser collects an unfinished
    header in memory, so that it must never be given more of a head than is allowed.
    """

    def __init__(self, *arguments: Any, table: ConnectionTable, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._table = table
        self._timer: asyncio.TimerHandle | None = None
        self._phase, self._received, self._unfinished = HEAD, 0, True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn does
        super().connection_made(transport)
        if self._table.add(self):
            self._start_timer()
        else:
            self._refuse(503, "the server has too many connections, all of them in use: try again")

    def connection_lost(self, exc: Exception | None) -> None:
        self._table.remove(self)
        self._stop_timer()
        super().connection_lost(exc)

    def shed(self) -> None:
        """Close the connection to make room for another one."""
        self.transport.close()

    def data_received(self, data: bytes) -> None:
        while data and not self.transport.is_closing():
            room = self._phase.most_bytes - self._received
            if room <= 0:
                self._refuse_large(self._phase)
                return
            part, data = data[:room], data[room:]
            self._received += len(part)
            super().data_received(part)
        if (self._unfinished or self._received) and not self.transport.is_closing():
            self._start_timer()

    def on_message_begin(self) -> None:
        self._unfinished = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        if len(self.pipeline) >= MOST_PIPELINED:
            self._table.count("pipelined")
            # uvicorn answers an error in the middle of parsing with 400, and closes.
            raise OverflowError("too many requests before the first answer")
        self._enter(BODY)
        self._table.set_busy(self)
        self._begin_request()

    def _begin_request(self) -> None:
        """Begin to answer a request whose head is complete."""
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._end_body()
        super().on_message_complete()

    def _end_body(self) -> None:
        self._enter(HEAD)
        self._unfinished = False

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # ``cycle`` is the last request that was read; earlier ones are answered before it.
        if self.cycle.response_complete:
            self._table.set_idle(self)

    def _enter(self, phase: Phase) -> None:
        self._stop_timer()
        self._phase, self._received = phase, 0

    def _start_timer(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self._phase.seconds, self._refuse_slow)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _refuse_large(self, phase: Phase) -> None:
        self._table.count(f"{phase.name}_too_large")
        self._refuse(
            phase.too_large,
            f"the {phase.name} of the request has more than the {phase.most_bytes:,} bytes that "
            f"are allowed: {phase.advice}",
        )

    def _refuse_slow(self) -> None:
        self._timer = None
        if self.transport.is_closing():
            return
        if self.flow.read_paused:
            # The server is not reading, so that the client is not the one who is slow.
            self._start_timer()
            return
        phase = self._phase
        self._table.count(f"{phase.name}_too_slow")
        if phase is HEAD and not self._received:
            self.transport.close()
            return
        self._refuse(
            408,
            f"the {phase.name} of the request took longer than the {phase.seconds:g} seconds that "
            "are allowed: send it again, faster",
        )

    def _refuse(self, status: int, sentence: str) -> None:
        """Answer, unless another answer was begun, and close the connection."""
        if self._may_answer():
            self.transport.write(_answer(status, sentence))
        self.transport.close()

    def _may_answer(self) -> bool:
        if self.cycle is None:
            return True
        if self._phase is HEAD:
            return self.cycle.response_complete
        return not self.cycle.response_started


def _answer(status: int, sentence: str) -> bytes:
    body = failure_body(status, sentence)
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
        f"content-type: {JSON}\r\ncontent-length: {len(body)}\r\n"
        "connection: close\r\n\r\n"
    )
    return head.encode() + body
