"""The HTTP application: what every request goes through, its routes, and errors as answers."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from submax.core.checks import one_of
from submax.core.errors import (
    ConflictError,
    Error,
    InputError,
    MissingExtraError,
    NotFoundError,
    StoreError,
)
from submax.server import javascript, openapi
from submax.server.access import KEY_PARAMETER, RATE, Access, Caller, read_headers, read_query
from submax.server.api import JSON, OPERATIONS, Call, Operation
from submax.server.exports import TooManyExportsError
from submax.server.limits import (
    KEY_SHARE,
    STRANGERS_SHARE,
    Admission,
    Bodies,
    RefusedError,
    TooLargeError,
)
from submax.server.messages import Decoder, Failure
from submax.server.metrics import Metrics
from submax.server.observing import CURRENT, NO_SPAN, RequestContext, RequestLog, Telemetry
from submax.server.service import Service

LOG = logging.getLogger("submax")
ENCODER = msgspec.json.Encoder()
MAX_ERROR_LENGTH = 500
"""Characters of an error message; longer ones, which may repeat a whole request, are cut."""
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PLAIN = "text/plain"
"""The type of a body that a page can send when it is left, without asking the server first."""
STATUS: tuple[tuple[type[Exception], int], ...] = (
    (TooLargeError, 413),
    (TooManyExportsError, 429),
    (NotFoundError, 404),
    (ConflictError, 409),
    (InputError, 400),
    (MissingExtraError, 501),
    (StoreError, 503),
)
"""The HTTP status of each error of the package; the first class that fits counts."""
CODES = {
    400: "invalid-input",
    401: "unauthorized",
    403: "forbidden",
    404: "not-found",
    405: "method-not-allowed",
    408: "too-slow",
    413: "too-large",
    415: "not-json",
    429: "too-many-requests",
    500: "defect",
    503: "unavailable",
}
"""The error codes of answers that do not come from an error of the package, by status."""
NO_ROUTE = {
    404: "there is nothing at this path: see /openapi.json",
    405: "this path does not support the method: see /openapi.json",
}


class Pages(Protocol):
    """What a browser sees: pages, and how a request that failed looks."""

    def routes(self) -> Sequence[BaseRoute]:
        """The routes of pages and their files; for browsers they come before those of the API."""

    async def failure(self, request: Request, error: Error, status: int) -> Response:
        """The page that shows a failure."""


class App:
    """An ASGI application that serves a service, which it starts and closes.

    Every request gets a context for the log, is answered by an operation or a page, and is counted
    whatever happens. An error becomes an answer with one sentence and a code.
    """

    def __init__(
        self,
        service: Service,
        *,
        origins: Iterable[str] = (),
        proxies: Iterable[str] = ("127.0.0.1",),
        rate: float = RATE,
        pages: Callable[[Service, Access], Pages] | None = None,
    ) -> None:
        self.service = service
        self.access = Access(service, origins, proxies, rate)
        self.metrics = Metrics(service.opened)
        self.telemetry: Telemetry | None = None
        self._log = RequestLog()
        self._admission, self._bodies = Admission(), Bodies()
        operations = [*OPERATIONS, *self._own_operations()]
        self._description = ENCODER.encode(openapi.description(operations))
        endpoints: dict[str, dict[str, ASGIApp]] = {}
        self._frequent: dict[str, ASGIApp] = {}
        for operation in operations:
            endpoint = self._endpoint(operation)
            endpoints.setdefault(operation.path, {})[operation.method] = endpoint
            if operation.for_pages:
                endpoints[operation.path]["OPTIONS"] = self._preflight
            if operation.frequent:
                self._frequent[operation.path.rpartition("/")[2]] = endpoint
        self._pages = None if pages is None else pages(service, self.access)
        routes = [Route(path, _ByMethod(methods)) for path, methods in endpoints.items()]
        routes.append(Route(javascript.PATH, javascript.JavaScriptClient().answer))
        shown = [] if self._pages is None else [*self._pages.routes()]
        pages_only = _router(shown, _not_found)
        # Browsers get pages where there are some, and programs get the API.
        self._for_programs = _router(routes, _named("page", pages_only))
        self._for_browsers = _named("page", _router(shown, _router(routes, _not_found)))
        self._lifespan_only = Router(lifespan=self.lifespan)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self._lifespan_only(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1000})
            return
        begin = time.perf_counter()
        headers = read_headers(scope)
        context = RequestContext(headers)
        token = CURRENT.set(context)
        sending = Sending(send, context, self.access)
        span = NO_SPAN if self.telemetry is None else self.telemetry.request(context)
        with span as recorded:
            try:
                await self._answer(scope, receive, sending, headers, context)
            except Exception as error:
                await self._answer_error(scope, receive, sending, context, error)
            except asyncio.CancelledError:
                stops = RefusedError(503, "the server stops: try again with the same id")
                await self._answer_error(scope, receive, sending, context, stops)
            if self.telemetry is not None:
                self.telemetry.end_request(recorded, context, sending.status)
        seconds = time.perf_counter() - begin
        self.metrics.count(context.operation, sending.status, seconds)
        self._log.write(context, sending.status, seconds)
        CURRENT.reset(token)

    async def _answer(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        headers: Mapping[str, str],
        context: RequestContext,
    ) -> None:
        scope["submax"] = headers, context
        # Finding a route takes longer than all else of a small request.
        if scope["method"] == "POST":
            parts = scope["path"].split("/")
            endpoint = self._frequent.get(parts[3]) if len(parts) == 4 else None
            if endpoint is not None and parts[1] == "bandits":
                scope["path_params"] = {"name": parts[2]}
                await endpoint(scope, receive, send)
                return
        if self._pages is not None and wants_page(headers):
            await self._for_browsers(scope, receive, send)
        else:
            await self._for_programs(scope, receive, send)

    # Operations

    def _endpoint(self, operation: Operation) -> ASGIApp:
        """The ASGI application of an operation."""
        decoder = None if operation.body is None else Decoder(operation.body)
        status = operation.status

        async def endpoint(scope: Scope, receive: Receive, send: Send) -> None:
            headers, context = scope["submax"]
            path: dict[str, str] = scope["path_params"]
            bandit = path.get("name")
            context.operation, context.bandit = operation.name, bandit or ""
            context.for_pages = operation.for_pages
            caller = await self.access.caller(
                scope, headers, operation.scope, bandit, partial=operation.partial
            )
            if not operation.early and not self.service.ready:
                raise RefusedError(
                    503,
                    "the server is still opening its bandits: try again",
                    {"Retry-After": "1"},
                )
            query = self._query(operation, scope)
            body = None
            if decoder is not None:
                _check_type(headers, caller)
                body = decoder.decode(await self._bodies.read(headers, receive, operation.largest))
            if operation.scope is not None:
                known = self.service.get(bandit) is not None if bandit else False
                self.access.check_rate(
                    caller, bandit if known and bandit else "", operation.cost(body)
                )
            if operation.early:
                answer = await operation.call(Call(self.service, caller, path, query, body))
            else:
                stranger = self.service.keys.needed and (caller.key is None or caller.is_browser)
                source = "" if stranger else caller.source or "local"
                self._admission.enter(source, STRANGERS_SHARE if stranger else KEY_SHARE)
                try:
                    answer = await operation.call(Call(self.service, caller, path, query, body))
                finally:
                    self._admission.leave(source)
            if isinstance(answer, Response):
                await answer(scope, receive, send)
            else:
                await _send(send, status, ENCODER.encode(answer))

        return endpoint

    @staticmethod
    def _query(operation: Operation, scope: Scope) -> dict[str, str]:
        """The query parameters; if an unknown one was ignored, a typing error would pass."""
        try:
            parameters = read_query(scope)
        except ValueError as error:
            raise InputError("the URL has too many query parameters: send fewer") from error
        query = {}
        for name, value in parameters:
            if name == KEY_PARAMETER and operation.for_pages:
                continue
            if not operation.query:
                raise InputError(
                    f"unknown query parameter {name[:60]!r}: this operation has none, so leave "
                    "it out"
                )
            one_of("query parameter", name[:60], operation.query)
            query[name] = value
        return query

    def _own_operations(self) -> list[Operation]:
        """The operations about the server itself: its description and its metrics."""

        async def described(call: Call) -> Response:
            return Response(self._description, media_type=JSON)

        async def measured(call: Call) -> Response:
            return Response(await call.in_thread(self.metrics.text), media_type=METRICS_TYPE)

        return [
            Operation(
                "openapi", "GET", "/openapi.json", None, "This description.",
                dict[str, Any], described, tag="Server", early=True,
            ),
            Operation(
                "metrics", "GET", "/metrics", "read", "Numbers for Prometheus.",
                bytes, measured, tag="Server", early=True, media="text/plain",
            ),
        ]  # fmt: skip

    async def _preflight(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Tell a browser whether a page may send a request."""
        headers, context = scope["submax"]
        context.operation, context.for_pages = "preflight", True
        if "origin" not in headers or "access-control-request-method" not in headers:
            raise HTTPException(405, headers={"Allow": "POST"})
        await Response(status_code=204, headers=self.access.preflight(headers))(
            scope, receive, send
        )

    # Errors as answers

    async def _answer_error(
        self,
        scope: Scope,
        receive: Receive,
        send: "Sending",
        context: RequestContext,
        error: Exception,
    ) -> None:
        """Send the answer to a request that failed."""
        status, sentence, code, headers = _described(error, context)
        if len(sentence) > MAX_ERROR_LENGTH:
            sentence = f"{sentence[: MAX_ERROR_LENGTH - 3]}..."
        context.code, context.sentence = code, sentence
        if send.status:
            LOG.error("%s broke off after its answer had begun", context.operation)
            return
        if self._pages is not None and wants_page(context.headers):
            if not isinstance(error, Error):
                error = RefusedError(status, sentence, headers, code)
            response = await self._pages.failure(Request(scope, receive), error, status)
        else:
            failure = ENCODER.encode(Failure(sentence, code))
            response = Response(failure, status, headers, media_type=JSON)
        # The client may be gone.
        with contextlib.suppress(OSError, RuntimeError):
            await response(scope, receive, send)

    @asynccontextmanager
    async def lifespan(self, app: Any) -> AsyncIterator[None]:
        """Open the bandits in the background, and close them at the end."""
        loop = asyncio.get_running_loop()
        starting = loop.run_in_executor(None, self.service.start)
        try:
            yield
        finally:
            self.service.stop()
            await starting
            await loop.run_in_executor(None, self.service.close)


class Sending:
    """Sends an answer, and notes its status.

    It adds the id of the request, if anybody may want to find it, and lets a declared page read
    the answer.
    """

    __slots__ = ("_access", "_context", "_send", "status")

    def __init__(self, send: Send, context: RequestContext, access: Access) -> None:
        self._send, self._context, self._access = send, context, access
        self.status = 0

    async def __call__(self, message: Message) -> None:
        """Send a message of ASGI."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = self._context.headers
            added = {}
            if self.status >= 500 or "x-request-id" in headers:
                added["x-request-id"] = self._context.identifier
            if self._context.for_pages and "origin" in headers:
                added |= self._access.cors_headers(headers)
            if added:
                raw = [(k.lower().encode(), v.encode("latin-1")) for k, v in added.items()]
                message["headers"] = [*message.get("headers", ()), *raw]
        await self._send(message)


class _ByMethod:
    """One route for all methods of a path, so a wrong method is told all right ones."""

    def __init__(self, endpoints: Mapping[str, ASGIApp]) -> None:
        self._endpoints = endpoints

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on to the endpoint of its method."""
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        endpoint = self._endpoints.get(method)
        if endpoint is None:
            raise HTTPException(405, headers={"Allow": ", ".join(self._endpoints)})
        await endpoint(scope, receive, send)


def _router(routes: Sequence[BaseRoute], default: ASGIApp) -> ASGIApp:
    return Router(routes, redirect_slashes=False, default=default)


def _named(operation: str, app: ASGIApp) -> ASGIApp:
    """An application whose requests are counted under a name, unless they get another."""

    async def named(scope: Scope, receive: Receive, send: Send) -> None:
        scope["submax"][1].operation = operation
        await app(scope, receive, send)

    return named


async def _not_found(scope: Scope, receive: Receive, send: Send) -> None:
    scope["submax"][1].operation = "none"
    raise HTTPException(404)


async def _send(send: Send, status: int, body: bytes) -> None:
    """Send an answer as JSON."""
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _check_type(headers: Mapping[str, str], caller: Caller) -> None:
    """Refuse other types than JSON, which browsers send to another site only if it allows it.

    With a browser key, which nobody keeps secret, plain text is allowed: a page that is left can
    send it at once, without asking the server first.
    """
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != JSON and not (caller.is_browser and kind == PLAIN):
        raise RefusedError(415, f"send JSON, with the header 'Content-Type: {JSON}' (curl --json)")


def _described(error: Exception, context: RequestContext) -> tuple[int, str, str, dict[str, str]]:
    """The status, the sentence, the code and the headers of an error."""
    if isinstance(error, RefusedError):
        code = error.given_code or CODES.get(error.status, "invalid-input")
        return error.status, str(error), code, error.headers
    if isinstance(error, HTTPException):
        sentence = NO_ROUTE.get(error.status_code, "the request is not understood")
        code = CODES.get(error.status_code, "invalid-input")
        return error.status_code, sentence, code, dict(error.headers or {})
    for kind, status in STATUS:
        if isinstance(error, kind) and isinstance(error, Error):
            return status, str(error), error.code, {}
    if isinstance(error, MemoryError):
        sentence = "the request needs more memory than the server has: ask for less"
        return 400, sentence, "invalid-input", {}
    LOG.error("%s failed", context.operation, exc_info=error)
    sentence = "the server failed, which is a defect of submax: see the log of the server"
    return 500, sentence, "defect", {}


def wants_page(headers: Mapping[str, str]) -> bool:
    """Whether a request prefers HTML to JSON; programs, which accept anything, get JSON."""
    if headers.get("hx-request") == "true":
        return True
    accepted = headers.get("accept", "").split(",")
    types = [each.partition(";")[0].strip() for each in accepted]
    return "text/html" in types and JSON not in types
