"""Spans of OpenTelemetry for requests, writes to the store, and fits.

This module is imported only if the server was started with --telemetry: it needs the extra
``telemetry``. Names of attributes are those of OpenTelemetry's semantic conventions for HTTP, and
``submax.…`` for what is not in them.
"""

import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Self

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.responses import Response

from submax._version import __version__
from submax.core.optional import SPANS
from submax.web.server.observing.request_context import RequestContext

PROPAGATOR = TraceContextTextMapPropagator()
"""Reads the header traceparent, so that the spans of a caller and of the server are one trace."""


class Telemetry:
    """Makes spans with a tracer of ``provider``, until it is closed."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("submax", __version__)
        SPANS.observe(self._begin)

    @classmethod
    def of_environment(cls) -> Self:
        """Send spans where the variables of OpenTelemetry say, such as OTEL_EXPORTER_OTLP_ENDPOINT.

        The name of the service is submax, unless OTEL_SERVICE_NAME names another.
        """
        name = os.environ.get("OTEL_SERVICE_NAME") or "submax"
        provider = TracerProvider(resource=Resource.create({"service.name": name}))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        return cls(provider)

    async def answered(
        self, context: RequestContext, answer: Callable[[], Awaitable[Response]]
    ) -> Response:
        """Answer a request within a span, whose parent may be a span of the caller."""
        parent = PROPAGATOR.extract(context.request.headers)
        attributes = {
            "submax.operation": context.operation,
            "submax.request_id": context.identifier,
        }
        if context.bandit:
            attributes["submax.bandit"] = context.bandit
        with self._tracer.start_as_current_span(
            f"submax.{context.operation}", parent, SpanKind.SERVER, attributes
        ) as span:
            response = await answer()
            span.set_attribute("http.response.status_code", response.status_code)
            if response.status_code >= 500:
                span.set_status(StatusCode.ERROR)
            return response

    def close(self) -> None:
        """Send the last spans, and observe no more."""
        SPANS.observe(None)
        self._provider.shutdown()

    def _begin(self, name: str, attributes: Mapping[str, Any]) -> AbstractContextManager[Any]:
        named = {f"submax.{word}": value for word, value in attributes.items()}
        return self._tracer.start_as_current_span(name, attributes=named)
