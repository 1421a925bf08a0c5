"""The steps of every request: authentication, limits, the operation, and answers to errors."""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from submax.core.errors import (
    ConflictError,
    InputError,
    MissingExtraError,
    NotFoundError,
    StoreError,
)
from submax.live.operating.audit_log import WITHOUT_KEY, AuditEntry
from submax.web.server.access.authenticator import Authenticator, origin_refused
from submax.web.server.access.key import Key
from submax.web.server.access.origins import Origins
from submax.web.server.access.rate_limit import RateLimit
from submax.web.server.access.refused_error import RefusedError
from submax.web.server.exports.too_many_exports_error import TooManyExportsError
from submax.web.server.interface.body import TooLargeError, limited_body
from submax.web.server.interface.body_decoder import BodyDecoder, check_type
from submax.web.server.interface.incoming import Endpoint, Incoming
from submax.web.server.interface.operation import Operation, OperationCall
from submax.web.server.interface.query import check_query
from submax.web.server.interface.responses import ENCODER, JSON, failure
from submax.web.server.metrics import Metrics
from submax.web.server.observing.request_context import CURRENT, RequestContext
from submax.web.server.observing.request_log import RequestLog
from submax.web.server.service import Service

if TYPE_CHECKING:
    from submax.web.server.observing.telemetry import Telemetry

LOG = logging.getLogger("submax")
RATE = 20_000.0
"""Requests a second for each key and bandit, if the key has no rate of its own: more than one
process can answer, so that only a runaway client meets it."""
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Responder = Callable[[Any, Request, Key | None], Awaitable[Response]]
"""Makes the response from the answer of an operation, for a request with this key."""
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


class RequestPipeline:
    """The steps of every request: key, body, rate limit, operation, answer, and metrics."""

    def __init__(
        self, service: Service, rate: float, metrics: Metrics, origins: Origins | None = None
    ) -> None:
        self.metrics = metrics
        self.origins = Origins() if origins is None else origins
        self.authenticator = Authenticator(service, self.origins)
        self._log = RequestLog()
        self.telemetry: Telemetry | None = None
        self.described = b""
        self._service, self._rate = service, rate
        self._limit = RateLimit()

    def endpoint(self, operation: Operation, respond: Responder | None = None) -> Endpoint:
        """The endpoint of an operation, with all steps around it.

        ``respond`` makes the response from the answer; without it the answer is sent as JSON.
        """
        decoder = None if operation.body is None else BodyDecoder(operation.body)
        declared = operation.query_names

        async def answer(request: Incoming) -> Response:
            key = self.authenticator.authenticated(request, operation)
            query, encrypted = _address(request)
            if query:
                check_query(query, declared)
            body = None
            if decoder is not None:
                check_type(request, key)
                body = decoder.decode(await limited_body(request))
            if operation.scope is not None:
                self._check_rate(request, key, operation.cost(body))
            call = OperationCall(self._service, request.path_params, body, key, query, encrypted)
            found = await operation.call(call)
            if operation.audited:
                await self._audit(operation, call, found)
            if isinstance(found, Response):
                return found
            if respond is not None and isinstance(request, Request):
                return await respond(found, request, key)
            return Response(ENCODER.encode(found), operation.status, media_type=JSON)

        return self._counted(operation.name, answer)

    def operations(self) -> list[Operation]:
        """The operations about the server itself: its description and its metrics."""

        async def described(call: OperationCall) -> Response:
            return Response(self.described, media_type=JSON)

        async def measured(call: OperationCall) -> Response:
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

    async def preflight(self, request: Incoming) -> Response:
        """Tell a browser whether a page may send a request."""
        origin = request.headers.get("origin")
        if origin is None or "access-control-request-method" not in request.headers:
            return await self.no_route(request, HTTPException(405, headers={"Allow": "POST"}))
        if origin not in self.origins:
            refused = origin_refused(origin)
            self.metrics.count("preflight", refused.status)
            return failure(refused.status, refused.sentence, code=refused.code)
        self.metrics.count("preflight", 204)
        return Response(status_code=204, headers=self.origins.preflight_headers(origin))

    async def no_route(self, request: Incoming, error: Exception) -> Response:
        """The answer to a path or a method that does not exist."""
        status = error.status_code if isinstance(error, HTTPException) else 404
        sentences = {
            404: "there is nothing at this path: see /openapi.json",
            405: "this path does not take this method: see /openapi.json",
        }
        self.metrics.count("none", status)
        headers = dict(error.headers or {}) if isinstance(error, HTTPException) else None
        return failure(status, sentences.get(status, "the request is not understood"), headers)

    def _counted(self, name: str, answer: Endpoint) -> Endpoint:
        """An endpoint that answers and counts every request, whatever happens."""

        async def counted(request: Incoming) -> Response:
            begin = time.perf_counter()
            context = RequestContext(name, request)
            token = CURRENT.set(context)
            if self.telemetry is None:
                response = await _answered(name, answer, request)
            else:
                response = await self.telemetry.answered(
                    context, lambda: _answered(name, answer, request)
                )
            seconds = time.perf_counter() - begin
            self.metrics.count(name, response.status_code, seconds)
            self._log.write(context, response, seconds)
            CURRENT.reset(token)
            self._add_headers(context, response)
            return response

        return counted

    def _add_headers(self, context: RequestContext, response: Response) -> None:
        """Name the request, if anybody may want to find it, and let a declared page read this."""
        headers = context.request.headers
        if response.status_code >= 500 or "x-request-id" in headers:
            response.headers["X-Request-ID"] = context.identifier
        origin = headers.get("origin")
        if origin is not None and origin in self.origins:
            response.headers.update(self.origins.answer_headers(origin))

    async def _audit(self, operation: Operation, call: OperationCall, answer: Any) -> None:
        """Record a change; if only the record fails, the change stays and the failure is logged."""
        key, name = ("", WITHOUT_KEY) if call.key is None else (call.key.id, call.key.name)
        detail = "" if call.body is None else ENCODER.encode(call.body).decode()
        entry = AuditEntry(operation.name, operation.subject(call, answer), key, name, detail)
        try:
            await asyncio.get_running_loop().run_in_executor(None, call.service.audit.write, entry)
        except StoreError as error:
            LOG.error("a change was made and not recorded, %s: %s", entry, error)

    def _check_rate(self, request: Incoming, key: Key | None, cost: float) -> None:
        name = request.path_params.get("name", "")
        # Unknown names share one limit: a limit for each would fill the memory.
        bandit = name if name in self._service else None
        rate = self._rate if key is None or key.rate is None else key.rate
        if not self._limit.allows((key and key.id, bandit), rate, cost):
            raise RefusedError(
                429,
                f"more than {rate:g} requests a second: slow down",
                {"Retry-After": str(math.ceil(max(1.0, 1 / rate)))},
            )


async def _answered(name: str, answer: Endpoint, request: Incoming) -> Response:
    try:
        return await answer(request)
    except RefusedError as error:
        return failure(error.status, error.sentence, error.headers, error.code)
    except asyncio.CancelledError:
        # The server is stopping, and its time to finish requests is over.
        return failure(503, "the server stops: try again with the same id", {"Retry-After": "1"})
    except ClientDisconnect:
        return failure(400, "the request broke off before its end: send it again")
    except (InputError, StoreError, MissingExtraError) as error:
        status = next(status for kind, status in STATUS if isinstance(error, kind))
        return failure(status, str(error), code=error.code)
    except MemoryError:
        return failure(400, "the request needs more memory than the server has: ask for less")
    except Exception:
        LOG.exception("%s failed", name)
        return failure(
            500, "the server failed, which is a defect of submax: see the log of the server"
        )


def _address(request: Incoming) -> tuple[Mapping[str, str], bool]:
    """The query of a request, and whether it was encrypted; small requests have neither."""
    if not isinstance(request, Request):
        return {}, False
    return request.query_params, request.url.scheme == "https"
