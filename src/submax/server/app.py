"""The HTTP application."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from submax.core.errors import Conflict, InvalidValue, MissingExtra, StoreUnavailable, Unknown, told
from submax.server.description import description
from submax.server.keys import Key
from submax.server.limits import TooLarge, limited_body
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
ENCODER = msgspec.json.Encoder()
STATUS: tuple[tuple[type[Exception], int], ...] = (
    (TooLarge, 413),
    (Unknown, 404),
    (Conflict, 409),
    (InvalidValue, 400),
    (MissingExtra, 501),
    (StoreUnavailable, 503),
)


class Refused(Exception):  # noqa: N818 - says what happened
    """A request that is answered with a status and a sentence."""

    def __init__(self, status: int, sentence: str, headers: dict[str, str] | None = None) -> None:
        self.status, self.sentence, self.headers = status, sentence, headers


def make_app(service: Service, rate: float = RATE) -> Starlette:
    """The application over a service, which it starts and closes."""
    gate = Gate(service, rate)
    all_operations = operations()
    routes = [
        Route(one.path, gate.endpoint(one), methods=[one.method], name=one.name)
        for one in all_operations
    ]
    text = ENCODER.encode(description(all_operations))
    routes += [
        Route("/openapi.json", gate.plain("openapi", None, lambda: text, JSON)),
        Route("/metrics", gate.plain("metrics", "read", gate.metrics.text, METRICS_TYPE)),
    ]

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        starting = loop.run_in_executor(None, service.start)
        try:
            yield
        finally:
            await starting
            await loop.run_in_executor(None, service.close)

    return Starlette(
        routes=routes, lifespan=lifespan, exception_handlers={HTTPException: gate.no_route}
    )


METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Gate:
    """What every request passes: the key, the limits, the body, and the words for errors."""

    def __init__(self, service: Service, rate: float) -> None:
        self.metrics = Metrics(service.opened)
        self._service, self._rate = service, rate
        self._limit = RateLimit()

    def endpoint(self, operation: Operation) -> Callable[[Request], Any]:
        """The operation behind the gate."""
        decoder = None if operation.body is None else msgspec.json.Decoder(operation.body)

        async def answer(request: Request) -> Response:
            key = self._admitted(request, operation.scope, operation.early)
            body = None
            if decoder is not None:
                _check_type(request)
                body = _decoded(decoder, await limited_body(request))
            self._check_rate(request, key, operation.cost(body))
            call = Call(self._service, request.path_params, body, key)
            found = await operation.call(call)
            if isinstance(found, Response):
                return found
            return Response(ENCODER.encode(found), operation.status, media_type=JSON)

        return self._counted(operation.name, answer)

    def plain(
        self, name: str, scope: str | None, text: Callable[[], bytes], media: str
    ) -> Callable[[Request], Any]:
        """A text behind the gate."""

        async def answer(request: Request) -> Response:
            self._admitted(request, scope, early=True)
            return Response(text(), media_type=media)

        return self._counted(name, answer)

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

    def _counted(self, name: str, answer: Callable[[Request], Any]) -> Callable[[Request], Any]:
        """Every request is answered and counted, whatever happens."""

        async def counted(request: Request) -> Response:
            begin = time.perf_counter()
            response = await _answered(name, answer, request)
            self.metrics.count(name, response.status_code, time.perf_counter() - begin)
            return response

        return counted

    def _admitted(self, request: Request, scope: str | None, early: bool) -> Key | None:
        """The key of the request; without any key in the store all are let in."""
        key = self._check_key(request, scope) if scope and len(self._service.keys) else None
        if not early and not self._service.ready:
            raise Refused(503, "the server is starting: try again", {"Retry-After": "1"})
        return key

    def _check_key(self, request: Request, scope: str) -> Key:
        kind, _, text = request.headers.get("authorization", "").partition(" ")
        key = self._service.keys.find(text.strip()) if kind.lower() == "bearer" else None
        if key is None:
            raise Refused(
                401,
                "a key is needed: send it as the header 'Authorization: Bearer KEY'",
                {"WWW-Authenticate": "Bearer"},
            )
        bandit = request.path_params.get("name")
        listing = bandit is None and scope == "read"
        if not key.allows(scope, bandit) and not (listing and key.may_list):
            raise Refused(403, f"this key does not allow {scope!r} here")
        return key

    def _check_rate(self, request: Request, key: Key | None, cost: float) -> None:
        bandit = request.path_params.get("name")
        rate = self._rate if key is None or key.rate is None else key.rate
        if bandit is not None and not self._limit.allows((key and key.id, bandit), rate, cost):
            raise Refused(
                429, f"more than {rate:g} requests a second: slow down", {"Retry-After": "1"}
            )


async def _answered(name: str, answer: Callable[[Request], Any], request: Request) -> Response:
    try:
        response: Response = await answer(request)
        return response
    except Refused as error:
        return failure(error.status, error.sentence, error.headers)
    except ClientDisconnect:
        return failure(400, "the request broke off")
    except (InvalidValue, StoreUnavailable, MissingExtra) as error:
        status = next(code for kind, code in STATUS if isinstance(error, kind))
        return failure(status, str(error))
    except Exception as error:
        LOG.exception("%s failed", name)
        return failure(500, f"the server failed, which is a defect of it: {told(error)}")


def failure(status: int, sentence: str, headers: dict[str, str] | None = None) -> Response:
    """An error as it is told."""
    return Response(ENCODER.encode(Failure(sentence)), status, headers, media_type=JSON)


def _check_type(request: Request) -> None:
    """A page in a browser cannot send this type to another site without asking first."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise Refused(415, f"send JSON, with the header 'Content-Type: {JSON}' (curl --json)")


def _decoded(decoder: "msgspec.json.Decoder[Any]", body: bytes) -> Any:
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InvalidValue(f"the body does not fit: {error}") from error
    except RecursionError as error:
        raise InvalidValue("the body is nested too deep") from error
