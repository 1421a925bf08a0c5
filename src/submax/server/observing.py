"""What operators see of the server: its log, metrics for Prometheus, and traces."""

import logging
import os
import re
import sys
import time
from collections import Counter as Counts
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import msgspec
from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from submax._version import __version__
from submax.bandit.durable import DurableBandit
from submax.bandit.names import new_identifier
from submax.core.optional import SPANS
from submax.server.limits import RateLimit

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

REQUESTS = logging.getLogger("submax.requests")
REFUSALS_A_SECOND = 10.0
"""Refused requests of one operation that are logged in a second: a client that sends nonsense must
not fill the disk, nor hide what others are refused."""
# A request id that is taken over from a caller or a proxy; others are replaced.
IDENTIFIER = re.compile(r"[!-~]{1,128}", re.ASCII)
ENCODER = msgspec.json.Encoder(enc_hook=str)
BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
"""Upper limits, in seconds, of the buckets of the histogram of durations. Most limits are at most
0.05, because 99 of 100 decisions should be answered within this time (docs/how-to/server.md)."""
ALWAYS_COUNTED = ("decisions", "rewards", "late rewards", "matured", "orphans",
                  "dropped from quarantine")  # fmt: skip
"""Kinds of events with a number even if it is 0: Prometheus sees no increase from nothing to 1."""


class RequestContext:
    """One request, with the operation that answers it and an id by which people can find it.

    ``path`` are the names in its path. The id is that of the header X-Request-ID, or a new one,
    which is made when it is first needed.
    """

    def __init__(self, headers: Mapping[str, str]) -> None:
        self.headers = headers
        self.path: dict[str, str] = {}
        self.operation, self.bandit = "none", ""
        self.code, self.sentence, self.status = "", "", 0

    @cached_property
    def identifier(self) -> str:
        sent = self.headers.get("x-request-id", "")
        return sent if IDENTIFIER.fullmatch(sent) else new_identifier()


CURRENT: ContextVar[RequestContext | None] = ContextVar("submax_request", default=None)
"""The request that is being answered; None if there is none."""


# The log


class RequestLog:
    """Logs every failure of the server, some refused requests, and with level debug all requests.

    The level is error from status 500 on, info for other refused requests, else debug.
    """

    def __init__(self) -> None:
        self._limit = RateLimit()

    def write(self, context: RequestContext, seconds: float) -> None:
        status = context.status
        # That the server is not ready yet is expected while it starts.
        refused = 400 <= status < 500 or context.operation == "ready"
        level = logging.INFO if refused else logging.ERROR if status >= 500 else logging.DEBUG
        if not REQUESTS.isEnabledFor(level):
            return
        if refused and not self._limit.allows(context.operation, REFUSALS_A_SECOND):
            return
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
    logging.getLogger().handlers = [handler]
    logging.captureWarnings(True)
    logging.getLogger("submax").setLevel(level.upper())


class TextFormatter(logging.Formatter):
    """A line with time, level, message and fields; a traceback follows on its own lines."""

    converter = staticmethod(time.gmtime)
    default_time_format, default_msec_format = "%Y-%m-%dT%H:%M:%S", "%s.%03dZ"

    @staticmethod
    def fields(record: logging.LogRecord) -> dict[str, Any]:
        current, fields = CURRENT.get(), {}
        if current is not None:
            fields["request_id"] = current.identifier
            if current.bandit:
                fields["bandit"] = current.bandit
        return fields | getattr(record, "fields", {})

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - a method of logging
        # A text of a request must not look like another line of the log.
        message = record.message.replace("\r", "\\r").replace("\n", "\\n")
        named = self.fields(record).items()
        parts = [f"{name}={value}" for name, value in named if str(value) not in message]
        return " ".join([self.formatTime(record), record.levelname, message, *parts])


class JsonFormatter(TextFormatter):
    """One JSON object for each message: time, level, logger, event, message, and its fields.

    ``event`` is a fixed word for programs, such as ``request``; it is ``message`` if the message
    has no other. A traceback is in ``exception``.
    """

    def format(self, record: logging.LogRecord) -> str:
        table = {
            "time": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": getattr(record, "event", "message"),
            "message": record.getMessage(),
            **self.fields(record),
        }
        if record.exc_info:
            table["exception"] = self.formatException(record.exc_info)
        return ENCODER.encode(table).decode()


# Metrics


class Metrics:
    """The metrics of a server: its requests, their durations, and the counts of its bandits.

    ``opened`` returns the bandits that are open now; it is called whenever Prometheus asks.
    """

    def __init__(self, opened: Callable[[], list[DurableBandit]]) -> None:
        self._registry = registry = CollectorRegistry()
        about = "Requests by operation and status."
        self._requests = Counter("submax_requests", about, ["operation", "status"],
                                 registry=registry)  # fmt: skip
        self._seconds = Histogram("submax_request_seconds", "Time from request to answer.",
                                  ["operation"], registry=registry, buckets=BUCKETS)  # fmt: skip
        self._labelled: dict[tuple[str, int], tuple[Counter, Histogram]] = {}
        registry.register(BanditCounts(opened))
        # Memory, processor time and open files of this process.
        ProcessCollector(registry=registry)

    def count(self, operation: str, status: int, seconds: float) -> None:
        labelled = self._labelled.get((operation, status))
        if labelled is None:
            labels = self._requests.labels(operation, str(status)), self._seconds.labels(operation)
            labelled = self._labelled[operation, status] = labels
        labelled[0].inc()
        labelled[1].observe(seconds)

    def text(self) -> bytes:
        return generate_latest(self._registry)


class BanditCounts(Collector):
    """What the store and this process know of each bandit."""

    def __init__(self, opened: Callable[[], list[DurableBandit]]) -> None:
        self._opened = opened

    def describe(self) -> list[Metric]:
        """Nothing: which metrics there are does not depend on a first look at the store."""
        return []

    def collect(self) -> Iterator[Metric]:
        def family(kind: Any, name: str, about: str, *more: str) -> Any:
            return kind(f"submax_{name}", about, None, ["bandit", *more])

        gauge, counter = GaugeMetricFamily, CounterMetricFamily
        events, version, failures, conditions, propensity = families = (
            family(counter, "events", "Events and outcomes of decisions in the store.", "kind"),
            family(gauge, "version", "The live version."),
            family(counter, "failures", "Failures after which the bandit continued.", "kind"),
            family(gauge, "conditions", "What is wrong now and deserves an alarm.", "kind"),
            family(gauge, "smallest_propensity", "The smallest probability of a drawn action."),
        )
        for bandit in self._opened():
            name, smallest = bandit.name, bandit.read.smallest_propensity()
            if smallest is not None:
                propensity.add_metric([name], smallest)
            version.add_metric([name], bandit.version)
            for metric, counts in (
                (conditions, Counts(one.kind for one in bandit.conditions())),
                (events, dict.fromkeys(ALWAYS_COUNTED, 0) | bandit.counts()),
                (failures, bandit.failures),
            ):
                for kind, count in counts.items():
                    metric.add_metric([name, kind.replace(" ", "_")], count)
        yield from families


# Traces


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

    @contextmanager
    def request(self, context: RequestContext) -> Iterator[None]:
        """A span around a request, whose parent may be a span of the caller."""
        from opentelemetry.trace import SpanKind, StatusCode

        parent = self._propagator.extract(context.headers)
        attributes = {"submax.request_id": context.identifier}
        with self._tracer.start_as_current_span(
            "submax.request", parent, SpanKind.SERVER, attributes
        ) as span:
            yield
            span.update_name(f"submax.{context.operation}")
            span.set_attribute("submax.operation", context.operation)
            span.set_attribute("http.response.status_code", context.status)
            if context.bandit:
                span.set_attribute("submax.bandit", context.bandit)
            if context.status >= 500:
                span.set_status(StatusCode.ERROR)

    def close(self) -> None:
        SPANS.observe(None)
        self._provider.shutdown()

    def _begin(self, name: str, attributes: Mapping[str, Any]) -> AbstractContextManager[Any]:
        named = {f"submax.{word}": value for word, value in attributes.items()}
        return self._tracer.start_as_current_span(name, attributes=named)
