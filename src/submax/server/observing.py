"""The log of the server: its form, and which requests are written to it; and traces."""

import logging
import os
import re
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

import msgspec

from submax._version import __version__
from submax.bandit.names import new_identifier
from submax.core.optional import SPANS
from submax.server.limits import RateLimit

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

REQUESTS = logging.getLogger("submax.requests")
REFUSALS_A_SECOND = 10.0
"""Refused requests logged in a second: a client that sends nonsense must not fill the disk."""
IDENTIFIER = re.compile(r"[!-~]{1,128}", re.ASCII)
"""A request id that is taken over from a caller or a proxy; others are replaced."""
ENCODER = msgspec.json.Encoder(enc_hook=str)


class RequestContext:
    """One request, with the operation that answers it and an id by which people can find it.

    The id is that of the header X-Request-ID, or a new one, which is made when it is first needed.
    """

    __slots__ = (
        "_identifier", "bandit", "code", "for_pages", "headers", "operation", "sentence",
    )  # fmt: skip

    def __init__(self, headers: Mapping[str, str]) -> None:
        self.headers = headers
        self.operation, self.bandit = "none", ""
        self.code, self.sentence = "", ""
        self.for_pages = False
        self._identifier: str | None = None

    @property
    def identifier(self) -> str:
        """The id of the request."""
        if self._identifier is None:
            sent = self.headers.get("x-request-id")
            valid = sent is not None and IDENTIFIER.fullmatch(sent)
            self._identifier = sent if valid and sent is not None else new_identifier()
        return self._identifier


CURRENT: ContextVar[RequestContext | None] = ContextVar("submax_request", default=None)
"""The request that is being answered; None if there is none."""


class RequestLog:
    """Logs every failure of the server, some refused requests, and with level debug all requests.

    The level is error from status 500 on, info for other refused requests, else debug.
    """

    def __init__(self) -> None:
        self._limit = RateLimit()
        self._left_out = 0

    def write(self, context: RequestContext, status: int, seconds: float) -> None:
        """Log an answered request, if it is one to be logged."""
        if status < 400:
            if REQUESTS.isEnabledFor(logging.DEBUG):
                self._log(logging.DEBUG, context, status, seconds)
        elif status >= 500:
            self._log(logging.ERROR, context, status, seconds)
        elif REQUESTS.isEnabledFor(logging.INFO):
            if not self._limit.allows("refusals", REFUSALS_A_SECOND):
                self._left_out += 1
                return
            self._log(logging.INFO, context, status, seconds)
            if self._left_out:
                REQUESTS.info("%s refused requests before this one were not logged", self._left_out)
                self._left_out = 0

    def _log(self, level: int, context: RequestContext, status: int, seconds: float) -> None:
        fields = {
            "request_id": context.identifier,
            "bandit": context.bandit,
            "operation": context.operation,
            "status": status,
            "duration_ms": round(1000 * seconds, 3),
        }
        message = f"{context.operation} was answered with {status}"
        if status >= 400:
            fields["code"] = context.code
            message += f": {context.sentence}"
        REQUESTS.log(level, "%s", message, extra={"event": "request", "fields": fields})


def set_up_log(form: str, level: str) -> None:
    """Write all messages to standard error, as text or JSON; warnings of Python, too."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers = [handler]
    logging.captureWarnings(True)
    logging.getLogger("submax").setLevel(level.upper())


def _time(record: logging.LogRecord) -> str:
    """When a message was written, in UTC to the millisecond, in the form of ISO 8601."""
    at = datetime.fromtimestamp(record.created, UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    """The fields of a message, and the request during which it was written."""
    fields: dict[str, Any] = {}
    current = CURRENT.get()
    if current is not None:
        fields["request_id"] = current.identifier
        if current.bandit:
            fields["bandit"] = current.bandit
    fields.update(getattr(record, "fields", {}))
    return fields


class JsonFormatter(logging.Formatter):
    """One JSON object for each message: time, level, logger, event, message, and its fields.

    ``event`` is a fixed word for programs, such as ``request``; it is ``message`` if the message
    has no other. A traceback is in ``exception``.
    """

    def format(self, record: logging.LogRecord) -> str:
        table = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": getattr(record, "event", "message"),
            "message": record.getMessage(),
            **_fields(record),
        }
        if record.exc_info:
            table["exception"] = self.formatException(record.exc_info)
        return ENCODER.encode(table).decode()


class TextFormatter(logging.Formatter):
    """A line with time, level, message and fields; a traceback follows on its own lines."""

    def format(self, record: logging.LogRecord) -> str:
        # A text of a request must not look like another line of the log.
        message = record.getMessage().replace("\r", "\\r").replace("\n", "\\n")
        fields = _fields(record).items()
        parts = [_time(record), record.levelname, message]
        parts += [f"{name}={value}" for name, value in fields if str(value) not in message]
        line = " ".join(parts)
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class Telemetry:
    """Spans of OpenTelemetry for requests, writes to the store, and fits.

    It needs the extra ``telemetry``. Names of attributes are those of OpenTelemetry's semantic
    conventions for HTTP, and ``submax.…`` for what is not in them.
    """

    def __init__(self, provider: "TracerProvider") -> None:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self._provider = provider
        self._tracer = provider.get_tracer("submax", __version__)
        # Reads the header traceparent, so spans of a caller and of the server are one trace.
        self._propagator = TraceContextTextMapPropagator()
        SPANS.observe(self._begin)

    @classmethod
    def of_environment(cls) -> Self:
        """Send spans where the variables of OpenTelemetry say, such as OTEL_EXPORTER_OTLP_ENDPOINT.

        The name of the service is submax, unless OTEL_SERVICE_NAME names another.
        """
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        name = os.environ.get("OTEL_SERVICE_NAME") or "submax"
        provider = TracerProvider(resource=Resource.create({"service.name": name}))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        return cls(provider)

    def request(self, context: RequestContext) -> AbstractContextManager[Any]:
        """A span around a request, whose parent may be a span of the caller."""
        from opentelemetry.trace import SpanKind

        parent = self._propagator.extract(context.headers)
        attributes = {"submax.request_id": context.identifier}
        return self._tracer.start_as_current_span(
            "submax.request", parent, SpanKind.SERVER, attributes
        )

    @staticmethod
    def end_request(span: Any, context: RequestContext, status: int) -> None:
        """Say in the span of a request which operation answered it, and how."""
        from opentelemetry.trace import StatusCode

        span.update_name(f"submax.{context.operation}")
        span.set_attribute("submax.operation", context.operation)
        span.set_attribute("http.response.status_code", status)
        if context.bandit:
            span.set_attribute("submax.bandit", context.bandit)
        if status >= 500:
            span.set_status(StatusCode.ERROR)

    def close(self) -> None:
        """Send the last spans, and observe no more."""
        SPANS.observe(None)
        self._provider.shutdown()

    def _begin(self, name: str, attributes: Mapping[str, Any]) -> AbstractContextManager[Any]:
        named = {f"submax.{word}": value for word, value in attributes.items()}
        return self._tracer.start_as_current_span(name, attributes=named)


NO_SPAN: AbstractContextManager[Any] = nullcontext()
