"""Metrics for Prometheus."""

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from submax.live.bandit import Bandit

BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)


class Metrics:
    """Requests by operation and status, their durations, and the counts of the bandits."""

    def __init__(self, opened: Callable[[], list[Bandit]]) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "submax_requests",
            "Requests by operation and status.",
            ["operation", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "submax_request_seconds",
            "Time from request to answer.",
            ["operation"],
            registry=self._registry,
            buckets=BUCKETS,
        )
        self._closed = Counter(
            "submax_connections_closed",
            "Connections that the server closed to protect itself, by reason.",
            ["reason"],
            registry=self._registry,
        )
        self._registry.register(BanditCounts(opened))

    def count(self, operation: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._requests.labels(operation, str(status)).inc()
        self._seconds.labels(operation).observe(seconds)

    def count_closed(self, reason: str) -> None:
        """Count a connection that the server closed to protect itself."""
        self._closed.labels(reason).inc()

    def text(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self._registry)


class BanditCounts(Collector):
    """The counts of each bandit, read when Prometheus asks for them."""

    def __init__(self, opened: Callable[[], list[Bandit]]) -> None:
        self._opened = opened

    def collect(self) -> Iterator[Metric]:
        """Yield the counts of events and outcomes, the version that decides, and the failures."""
        events = CounterMetricFamily(
            "submax_events",
            "Events and outcomes of decisions in the log, by kind.",
            labels=["bandit", "kind"],
        )
        version = GaugeMetricFamily(
            "submax_version", "The version that decides.", labels=["bandit"]
        )
        failures = CounterMetricFamily(
            "submax_failures",
            "Failures after which the bandit went on.",
            labels=["bandit", "kind"],
        )
        for bandit in self._opened():
            for kind, count in bandit.counts().items():
                events.add_metric([bandit.name, kind.replace(" ", "_")], count)
            version.add_metric([bandit.name], bandit.version)
            for kind, count in bandit.failures.items():
                failures.add_metric([bandit.name, kind.replace(" ", "_")], count)
        yield from (events, version, failures)
