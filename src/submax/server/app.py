"""The HTTP application: what every request goes through, its routes, and errors as answers."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from itertools import chain
from typing import Any

import msgspec
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from submax.core.errors import (
    ConflictError,
    Error,
    InputError,
    MissingExtraError,
    NotFoundError,
    StoreError,
)
from submax.server import openapi
from submax.server.access import RATE, Access, read_headers
from submax.server.api import JSON, OPERATIONS, SERVER, Call, Operation, path_pattern
from submax.server.limits import RETRY_SOON, RefusedError, read_body
from submax.server.messages import Decoder, Failure
from submax.server.observing import CURRENT, Metrics, RequestContext, RequestLog, Telemetry
from submax.server.pages.routes import Pages
from submax.server.service import Service

LOG = logging.getLogger("submax")
NO_SPAN: AbstractContextManager[None] = nullcontext()
ENCODER = msgspec.json.Encoder()
MAX_ERROR_LENGTH = 500  # characters; longer ones, which may repeat a whole request, are cut
PREFLIGHT_SECONDS = 7200
"""How long a browser remembers which requests a page may send: two hours at most in Chromium."""
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
STATUS: tuple[tuple[type[Exception], int], ...] = (
    (NotFoundError, 404),
    (ConflictError, 409),
    (InputError, 400),
    (MissingExtraError, 501),
    (StoreError, 503),
)
"""The HTTP status of each error of the package; the first class that fits counts."""
Endpoint = Callable[[RequestContext, Scope, Receive], Awaitable[Response]]
"""Answers a request."""
Routes = dict[str, dict[str, Endpoint]]
"""The endpoints by path and method; a path that is asked for often comes early."""


class DeclaredOrigins(CORSMiddleware):
    """Lets browsers send requests from the pages that a key is for, and show them the answers."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        super().__init__(
            app,
            allow_methods=["POST"],
            allow_headers=["authorization", "content-type", "x-request-id"],
            expose_headers=["x-request-id", "retry-after"],
            max_age=PREFLIGHT_SECONDS,
        )
        self._access = access

    def is_allowed_origin(self, origin: str) -> bool:
        return self._access.is_declared(origin)


class App:
    """An ASGI application that serves a service, which it starts and closes.

    Every request gets a context for the log, is answered by an operation or a page, and is counted
    whatever happens. An error becomes an answer with one sentence and a code.
    """

    def __init__(self, service: Service, *, rate: float = RATE) -> None:
        self.service = service
        self.access = Access(service, rate)
        self.metrics = Metrics(service.opened)
        self.telemetry: Telemetry | None = None
        self._log = RequestLog()
        self._operations, self._shown = Routes(), Routes()
        operations = [*OPERATIONS, *self._own_operations()]
        self._description = ENCODER.encode(openapi.description(operations))
        for operation in operations:
            methods = self._operations.setdefault(operation.path, {})
            methods[operation.method] = self._endpoint(operation)
        self._pages = Pages(service, self.access)
        for path, page in self._pages.routes().items():
            self._shown[path] = {"GET": _page_endpoint(page)}
        self._lifespan_only = Router(lifespan=self.lifespan)
        self._for_pages = DeclaredOrigins(self._answer, self.access)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan_only(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1000})
            return
        # Only browsers name an origin, and the middleware takes a tenth of a decision's time.
        is_page = any(name == b"origin" for name, _ in scope["headers"])
        await (self._for_pages if is_page else self._answer)(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        begin = time.perf_counter()
        context = RequestContext(read_headers(scope))
        token = CURRENT.set(context)
        with NO_SPAN if self.telemetry is None else self.telemetry.request(context):
            try:
                response = await self._find(context, scope)(context, scope, receive)
            except Exception as error:
                response = await self._failed(context, scope, error)
            except asyncio.CancelledError:
                stops = RefusedError(503, "the server stops: try again with the same id")
                response = await self._failed(context, scope, stops)
            await self._send(context, response, scope, receive, send)
        seconds = time.perf_counter() - begin
        self.metrics.count(context.operation, context.status, seconds)
        self._log.write(context, seconds)
        CURRENT.reset(token)

    def _find(self, context: RequestContext, scope: Scope) -> Endpoint:
        path, method = scope["path"], "GET" if scope["method"] == "HEAD" else scope["method"]
        routes = [self._operations, self._shown]
        if wants_page(context.headers):
            routes.reverse()
        allowed: list[str] = []
        for pattern, methods in chain.from_iterable(one.items() for one in routes):
            found = path_pattern(pattern).fullmatch(path)
            if found is not None and method in methods:
                context.path = found.groupdict()
                return methods[method]
            allowed += methods if found is not None else ()
        if allowed:
            usable = ", ".join(dict.fromkeys(allowed))
            sentence = f"{scope['method']} is not allowed at this path: use {usable}"
            raise RefusedError(405, sentence, {"Allow": usable})
        raise RefusedError(404, "there is nothing at this path: see /openapi.json")

    async def _send(
        self, context: RequestContext, response: Response, scope: Scope, receive: Receive,
        send: Send,
    ) -> None:  # fmt: skip
        """Send an answer with the id of the request, if anybody may want to find it."""
        context.status = response.status_code
        if context.status >= 500 or "x-request-id" in context.headers:
            response.headers["x-request-id"] = context.identifier
        try:
            await response(scope, receive, send)
        except (Exception, asyncio.CancelledError):
            # The client is gone, or a file cannot be read.
            LOG.error("%s failed after the response had started", context.operation)

    # Operations

    def _endpoint(self, operation: Operation) -> Endpoint:
        decoder = None if operation.body is None else Decoder(operation.body)

        async def endpoint(context: RequestContext, scope: Scope, receive: Receive) -> Response:
            headers, bandit = context.headers, context.path.get("name")
            context.operation, context.bandit = operation.name, bandit or ""
            caller = await self.access.caller(
                scope, headers, operation.scope, bandit, partial=operation.partial
            )
            if not operation.early and not self.service.ready:
                sentence = "the server is still opening its bandits: try again"
                raise RefusedError(503, sentence, RETRY_SOON)
            if scope["query_string"]:
                raise InputError("no operation has query parameters: remove them from the URL")
            body = None
            if decoder is not None:
                sent = await read_body(headers, receive)
                if sent or not decoder.when_empty:
                    _check_type(headers)
                body = decoder.decode(sent or decoder.when_empty)
            if operation.scope is not None:
                known = bandit if bandit and self.service.get(bandit) is not None else ""
                self.access.check_rate(caller, known, operation.cost(body))
            call = Call(self.service, caller, context.path, body)
            answer = await operation.carry_out(call)
            if isinstance(answer, Response):
                return answer
            return Response(ENCODER.encode(answer), operation.status, media_type=JSON)

        return endpoint

    def _own_operations(self) -> list[Operation]:

        async def described(call: Call) -> Response:
            return Response(self._description, media_type=JSON)

        def measured(call: Call) -> Response:
            return Response(self.metrics.text(), media_type=METRICS_TYPE)

        return [
            Operation("openapi", "GET", "/openapi.json", None, "This description.", dict[str, Any],
                      described, tag=SERVER, early=True),
            Operation("metrics", "GET", "/metrics", "read", "Numbers for Prometheus.", bytes,
                      measured, tag=SERVER, early=True, media="text/plain"),
        ]  # fmt: skip

    # Errors as answers

    async def _failed(self, context: RequestContext, scope: Scope, raised: Exception) -> Response:
        error, status, headers = _as_error(context, raised)
        sentence = str(error)
        if len(sentence) > MAX_ERROR_LENGTH:
            sentence = f"{sentence[: MAX_ERROR_LENGTH - 3]}..."
        context.code, context.sentence = error.code, sentence
        if wants_page(context.headers):
            return await self._pages.failure(Request(scope), error, status)
        failure = ENCODER.encode(Failure(sentence, error.code))
        return Response(failure, status, headers, media_type=JSON)

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


def _as_error(context: RequestContext, raised: Exception) -> tuple[Error, int, dict[str, str]]:
    if isinstance(raised, RefusedError):
        return raised, raised.status, raised.headers
    for kind, status in STATUS:
        if isinstance(raised, kind) and isinstance(raised, Error):
            return raised, status, {}
    if isinstance(raised, (MemoryError, RecursionError)):
        sentence = "the request is too large or nested too deep: ask for less"
        return InputError(sentence), 400, {}
    LOG.error("%s failed", context.operation, exc_info=raised)
    sentence = "the server failed, which is a defect of submax: see the log of the server"
    return RefusedError(500, sentence), 500, {}


def _page_endpoint(page: Callable[[Request], Awaitable[Response]]) -> Endpoint:
    async def endpoint(context: RequestContext, scope: Scope, receive: Receive) -> Response:
        context.operation = "page"
        scope["path_params"] = context.path
        return await page(Request(scope, receive))

    return endpoint


def _check_type(headers: Mapping[str, str]) -> None:
    """Refuse other types than JSON, which browsers send to another site only if it allows it."""
    if headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise RefusedError(415, f"send JSON, with the header 'Content-Type: {JSON}' (curl --json)")


def wants_page(headers: Mapping[str, str]) -> bool:
    """Whether a request prefers HTML to JSON; programs, which accept anything, get JSON."""
    if headers.get("hx-request") == "true":
        return True
    accepted = headers.get("accept", "").split(",")
    types = [each.partition(";")[0].strip() for each in accepted]
    return "text/html" in types and JSON not in types
