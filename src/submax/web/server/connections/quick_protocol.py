"""Answers small frequent requests without ASGI."""

import re
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from submax.web.server.connections.admission import Admission
from submax.web.server.connections.limited_protocol import LimitedProtocol
from submax.web.server.connections.quick_cycle import QuickCycle
from submax.web.server.interface.incoming import Endpoint
from submax.web.server.interface.small_request import SmallRequest

SMALL_BODY = 65_536
"""Bytes of a body that is held until it is complete: most fit into one packet."""
BODY_HEADERS = (b"content-length", b"transfer-encoding")
"""The headers that say how a body is sent."""
QUICK_PATH = re.compile(rb"/bandits/([a-z0-9][a-z0-9_-]{0,63})/([a-z-]+)")
"""The paths of operations on a bandit; a path with other characters is left to Starlette."""


class QuickProtocol(LimitedProtocol):
    """A connection that answers some operations itself, with one write to the socket.

    ``endpoints`` are those of the operations that are frequent, by the last part of their path. A
    request for one of them that arrives as a whole is answered by the same endpoint as through
    ASGI, so that both answers are the same bytes. If its body is large or comes later, or if its
    head asks for anything special, it is passed on to uvicorn. ``admission`` limits both.
    """

    def __init__(
        self,
        *arguments: Any,
        endpoints: Mapping[bytes, Endpoint],
        admission: Admission,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self._endpoints, self._admission = endpoints, admission
        self._held: tuple[bytes, Endpoint] | None = None
        self._body = b""

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._held is not None and not self.transport.is_closing():
            self._pass_on()

    def on_body(self, body: bytes) -> None:
        if self._held is None:
            super().on_body(body)
        else:
            self._body += body

    def on_message_complete(self) -> None:
        if self._held is None:
            super().on_message_complete()
            return
        (name, endpoint), self._held = self._held, None
        self._end_body()
        # Of several headers with the same name the first one counts, as in Starlette.
        headers = {
            key.decode("latin-1"): value.decode("latin-1") for key, value in reversed(self.headers)
        }
        request = SmallRequest(headers, {"name": name.decode()}, self._body, self.client)
        self._begin(QuickCycle(request, endpoint, self.parser.should_keep_alive()))

    def _begin_request(self) -> None:
        self._held, self._body = self._matched(), b""
        if self._held is None:
            super()._begin_request()

    def _matched(self) -> tuple[bytes, Endpoint] | None:
        """The name of the bandit and the endpoint, if the request may be answered here."""
        found = QUICK_PATH.fullmatch(self.url)
        if found is None or self.parser.get_method() != b"POST":
            return None
        endpoint = self._endpoints.get(found[2])
        if (
            endpoint is None
            or self.expect_100_continue
            or self.parser.get_http_version() != "1.1"
            or self.parser.should_upgrade()
            or not self._has_small_body()
        ):
            return None
        return found[1], endpoint

    def _has_small_body(self) -> bool:
        lengths = [value for name, value in self.headers if name in BODY_HEADERS]
        # The value of another transfer encoding is no number. More than six digits are more than a
        # small body has.
        return (
            len(lengths) == 1
            and lengths[0].isdigit()
            and len(lengths[0]) <= 6
            and int(lengths[0]) <= SMALL_BODY
        )

    def _pass_on(self) -> None:
        """Let uvicorn answer a request whose body has not come yet."""
        self._held = None
        HttpToolsProtocol.on_headers_complete(self)
        if self._body:
            HttpToolsProtocol.on_body(self, self._body)

    def _begin(self, cycle: QuickCycle) -> None:
        before, self.cycle = self.cycle, cycle  # type: ignore[assignment]  # see QuickCycle
        if before is None or before.response_complete:
            self._start_asgi_task(cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((cycle, self.app))  # type: ignore[arg-type]  # see QuickCycle

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        if not isinstance(cycle, QuickCycle):
            super()._start_asgi_task(cycle, app)
            return
        task = self.loop.create_task(self._run(cycle))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _run(self, cycle: QuickCycle) -> None:
        request = cycle.request
        if not self._admission.enter(request.headers.get("authorization", "")):
            self._answer(cycle, self._admission.refusal())
            return
        try:
            response = await cycle.endpoint(request)
        finally:
            self._admission.leave()
        if self.flow.write_paused and not cycle.disconnected:
            await self.flow.drain()
        self._answer(cycle, response)

    def _answer(self, cycle: QuickCycle, response: Response) -> None:
        """Write an answer, in the bytes that uvicorn would write."""
        if cycle.disconnected:
            return
        parts = [STATUS_LINE[response.status_code]]
        for name, value in (*self.server_state.default_headers, *response.raw_headers):
            parts += (name, b": ", value, b"\r\n")
            if name == b"connection" and value == b"close":
                cycle.keep_alive = False
        if not cycle.keep_alive and (b"connection", b"close") not in response.raw_headers:
            parts.append(b"connection: close\r\n")
        parts.append(b"\r\n")
        self.transport.write(b"".join([*parts, response.body]))
        cycle.response_started = cycle.response_complete = True
        if not cycle.keep_alive:
            self.transport.close()
        self.on_response_complete()
