"""The HTTP application."""

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from typing import Any
from urllib.parse import urlsplit

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from submax.core.errors import (
    ConflictError,
    InputError,
    MissingExtraError,
    NotFoundError,
    StoreError,
)
from submax.server.addresses import is_loopback
from submax.server.description import description
from submax.server.keys import Key
from submax.server.limits import TooLargeError, check_twice, limited_body
from submax.server.messages import Failure
from submax.server.metrics import Metrics
from submax.server.operation import Call, Operation
from submax.server.operations import operations
from submax.server.rate_limit import RateLimit
from submax.server.service import Service

LOG = logging.getLogger("submax")
JSON = "application/json"
RATE = 20_000.0
"""Requests a second for each key and bandit, where the key does not say."""
LONGEST_SENTENCE = 500
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
ENCODER = msgspec.json.Encoder()
Endpoint = Callable[[Request], Awaitable[Response]]
STATUS: tuple[tuple[type[Exception], int], ...] = (
    (TooLargeError, 413),
    (NotFoundError, 404),
    (ConflictError, 409),
    (InputError, 400),
    (MissingExtraError, 501),
    (StoreError, 503),
)
CODES = {
    400: "invalid-input",
    401: "unauthorized",
    403: "forbidden",
    404: "not-found",
    405: "method-not-allowed",
    415: "not-json",
    429: "too-many-requests",
    500: "defect",
    503: "unavailable",
}
"""The codes of answers that come from the server itself and not from an error of the package."""


class RefusedError(Exception):
    """A request that is answered with a status and a sentence."""

    def __init__(self, status: int, sentence: str, headers: dict[str, str] | None = None) -> None:
        self.status, self.sentence, self.headers = status, sentence, headers


def make_app(
    service: Service,
    rate: float = RATE,
    deadline: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Starlette:
    """The application over a service, which it starts, and closes within a ``deadline``."""
    gate = Gate(service, rate)
    all_operations = [*operations(), *gate.operations()]
    text = ENCODER.encode(description(all_operations))
    gate.described = text
    # One route a path, so that a wrong method is told all that are right.
    methods: dict[str, dict[str, Endpoint]] = {}
    for one in all_operations:
        methods.setdefault(one.path, {})[one.method] = gate.endpoint(one)
    routes = [Route(path, _by_method(one), methods=list(one)) for path, one in methods.items()]

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        starting = loop.run_in_executor(None, service.start)
        try:
            yield
        finally:
            service.stop()
            with deadline():
                await starting
                await loop.run_in_executor(None, service.close)

    app = Starlette(
        routes=routes, lifespan=lifespan, exception_handlers={HTTPException: gate.no_route}
    )
    # A path that does not exist is told so, not led elsewhere.
    app.router.redirect_slashes = False
    return app


def _by_method(endpoints: dict[str, Endpoint]) -> Endpoint:
    async def answer(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        return await endpoints[method](request)

    return answer


class Gate:
    """What every request passes: the key, the limits, the body, and the words for errors."""

    def __init__(self, service: Service, rate: float) -> None:
        self.metrics = Metrics(service.opened)
        self.described = b""
        self._service, self._rate = service, rate
        self._limit = RateLimit()

    def endpoint(self, operation: Operation) -> Endpoint:
        """The operation behind the gate."""
        decoder = None if operation.body is None else msgspec.json.Decoder(operation.body)

        async def answer(request: Request) -> Response:
            key = self._admitted(request, operation)
            body = None
            if decoder is not None:
                _check_type(request)
                body = _decoded(decoder, await limited_body(request))
            if operation.scope is not None:
                self._check_rate(request, key, operation.cost(body))
            call = Call(self._service, request.path_params, body, key)
            found = await operation.call(call)
            if isinstance(found, Response):
                return found
            return Response(ENCODER.encode(found), operation.status, media_type=JSON)

        return self._counted(operation.name, answer)

    def operations(self) -> list[Operation]:
        """Those that tell of the server itself."""

        async def described(call: Call) -> Response:
            return Response(self.described, media_type=JSON)

        async def measured(call: Call) -> Response:
            return Response(self.metrics.text(), media_type=METRICS_TYPE)

        return [
            Operation(
                "openapi",
                "GET",
                "/openapi.json",
                None,
                "This description.",
                dict[str, Any],
                described,
                early=True,
            ),
            Operation(
                "metrics",
                "GET",
                "/metrics",
                "read",
                "Numbers for Prometheus.",
                bytes,
                measured,
                early=True,
                media="text/plain",
            ),
        ]

    async def no_route(self, request: Request, error: Exception) -> Response:
        """A path or a method that does not exist."""
        status = error.status_code if isinstance(error, HTTPException) else 404
        sentences = {
            404: "there is nothing at this path: see /openapi.json",
            405: "this path does not take this method: see /openapi.json",
        }
        self.metrics.count("none", status, 0.0)
        headers = dict(error.headers or {}) if isinstance(error, HTTPException) else None
        return failure(status, sentences.get(status, "the request is not understood"), headers)

    def _counted(self, name: str, answer: Endpoint) -> Endpoint:
        """Every request is answered and counted, whatever happens."""

        async def counted(request: Request) -> Response:
            begin = time.perf_counter()
            response = await _answered(name, answer, request)
            self.metrics.count(name, response.status_code, time.perf_counter() - begin)
            return response

        return counted

    def _admitted(self, request: Request, operation: Operation) -> Key | None:
        """The key of the request; where there was never any key all on this machine are let in."""
        key = None
        if operation.scope is not None and self._service.keys.needed:
            key = self._check_key(request, operation.scope, operation.partial)
        elif operation.scope is not None:
            check_local(request)
        if not operation.early and not self._service.ready:
            raise RefusedError(503, "the server is not ready: try again", {"Retry-After": "1"})
        return key

    def _check_key(self, request: Request, scope: str, partial: bool) -> Key:
        kind, _, text = request.headers.get("authorization", "").partition(" ")
        key = self._service.keys.find(text.strip()) if kind.lower() == "bearer" else None
        if key is None:
            sent = kind.lower() == "bearer" and bool(text.strip())
            raise RefusedError(
                401,
                "this key is not known, or was revoked"
                if sent
                else "a key is needed: send it as the header 'Authorization: Bearer KEY'",
                {"WWW-Authenticate": "Bearer"},
            )
        bandit = request.path_params.get("name")
        if not key.allows(scope, bandit) and not (partial and key.may_list):
            raise RefusedError(403, f"this key does not allow {scope!r} here")
        return key

    def _check_rate(self, request: Request, key: Key | None, cost: float) -> None:
        name = request.path_params.get("name", "")
        # Names that do not exist are told apart no further, or they would fill the memory.
        bandit = name if name in self._service else None
        rate = self._rate if key is None or key.rate is None else key.rate
        if not self._limit.allows((key and key.id, bandit), rate, cost):
            raise RefusedError(
                429,
                f"more than {rate:g} requests a second: slow down",
                {"Retry-After": str(math.ceil(max(1.0, 1 / rate)))},
            )


async def _answered(name: str, answer: Endpoint, request: Request) -> Response:
    try:
        return await answer(request)
    except RefusedError as error:
        return failure(error.status, error.sentence, error.headers)
    except asyncio.CancelledError:
        # The server was told to stop, and waits no longer.
        return failure(503, "the server stops: try again with the same id", {"Retry-After": "1"})
    except ClientDisconnect:
        return failure(400, "the request broke off")
    except (InputError, StoreError, MissingExtraError) as error:
        status = next(status for kind, status in STATUS if isinstance(error, kind))
        return failure(status, str(error), code=error.code)
    except MemoryError:
        return failure(400, "what was asked for does not fit into the memory of the server")
    except Exception:
        LOG.exception("%s failed", name)
        return failure(500, "the server failed, which is a defect of it: its log says more")


def failure(
    status: int,
    sentence: str,
    headers: dict[str, str] | None = None,
    code: str | None = None,
) -> Response:
    """The answer to a request that failed. A long sentence is cut short."""
    if len(sentence) > LONGEST_SENTENCE:
        sentence = f"{sentence[: LONGEST_SENTENCE - 3]}..."
    body = Failure(sentence, code or CODES.get(status, "invalid-input"))
    return Response(ENCODER.encode(body), status, headers, media_type=JSON)


def check_local(request: Request) -> None:
    """Refuse what a page of another site makes a browser on this machine send."""
    host = request.headers.get("host", "")
    origin = request.headers.get("origin")
    if not is_loopback(urlsplit(f"//{host}").hostname or ""):
        raise RefusedError(403, "without keys the server answers to 127.0.0.1 and localhost alone")
    if origin is not None and urlsplit(origin).netloc != host:
        raise RefusedError(403, "without keys the server answers no pages of other sites")


def _check_type(request: Request) -> None:
    """A page in a browser cannot send this type to another site without asking first."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise RefusedError(415, f"send JSON, with the header 'Content-Type: {JSON}' (curl --json)")


def _decoded(decoder: "msgspec.json.Decoder[Any]", body: bytes) -> Any:
    try:
        found = decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(f"the body does not fit: {error}") from error
    except RecursionError as error:
        raise InputError("the body is nested too deep") from error
    check_twice(body)
    return found
