"""Metrics for Prometheus."""

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from submax.live.bandits.bandit import LiveBandit

BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
"""Upper limits, in seconds, of the buckets of the histogram of durations. Most limits are at most
0.05, because 99 of 100 decisions should be answered within this time (docs/how-to/server.md)."""

ALWAYS_COUNTED = (
    "decisions",
    "rewards",
    "late rewards",
    "matured",
    "orphans",
    "dropped from quarantine",
)
"""Kinds of events with a number even if it is 0: Prometheus sees no increase from nothing to 1."""


class Metrics:
    """The metrics of a server: its requests, their durations, and the counts of its bandits.

    ``opened`` returns the bandits that are open now; it is called whenever Prometheus asks.
    """

    def __init__(self, opened: Callable[[], list[LiveBandit]]) -> None:
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
        self._labelled: dict[tuple[str, int], tuple[Counter, Histogram | None]] = {}
        self._registry.register(BanditCounts(opened))
        # Memory, processor time and open files of this process.
        ProcessCollector(registry=self._registry)

    def count(self, operation: str, status: int, seconds: float | None = None) -> None:
        """Count one answered request, with its HTTP status and the seconds that it took.

        ``seconds`` is None if no operation was begun; such a request has no duration.
        """
        found = self._labelled.get((operation, status))
        if found is None:
            # Finding a counter by its labels takes longer than counting.
            found = self._labelled[operation, status] = (
                self._requests.labels(operation, str(status)),
                None if seconds is None else self._seconds.labels(operation),
            )
        requests, durations = found
        requests.inc()
        if durations is not None and seconds is not None:
            durations.observe(seconds)

    def count_closed(self, reason: str) -> None:
        """Count a connection that the server closed to protect itself."""
        self._closed.labels(reason).inc()

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self._registry)


class BanditCounts(Collector):
    """The counts, version and failures of each bandit, read when Prometheus asks for them."""

    def __init__(self, opened: Callable[[], list[LiveBandit]]) -> None:
        self._opened = opened

    def collect(self) -> Iterator[Metric]:
        """Yield five metrics with the bandit as a label.

        ``submax_events`` counts events, such as decisions and rewards, and what became of
        decisions, such as matured; a bandit has these counts only in the process that reads its
        log. ``submax_version`` is the version that decides. ``submax_failures`` counts failures
        after which the bandit continued, such as a decision by a fallback. ``submax_alarms`` are
        the active alarms, and ``submax_smallest_propensity`` is the smallest propensity in the log.
        """
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
        alarms = GaugeMetricFamily(
            "submax_alarms", "Active alarms, by kind.", labels=["bandit", "kind"]
        )
        propensity = GaugeMetricFamily(
            "submax_smallest_propensity",
            "The smallest probability with which an action was drawn.",
            labels=["bandit"],
        )
        for bandit in self._opened():
            for kind, count in bandit.active_alarms().items():
                alarms.add_metric([bandit.name, kind], count)
            smallest = bandit.smallest_propensity()
            if smallest is not None:
                propensity.add_metric([bandit.name], smallest)
            counts = bandit.counts()
            if counts:
                counts = dict.fromkeys(ALWAYS_COUNTED, 0) | counts
            for kind, count in counts.items():
                events.add_metric([bandit.name, kind.replace(" ", "_")], count)
            version.add_metric([bandit.name], bandit.version)
            for kind, count in bandit.failures.items():
                failures.add_metric([bandit.name, kind.replace(" ", "_")], count)
        yield from (events, version, failures, alarms, propensity)
