"""Metrics for Prometheus."""

import time
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector

from submax.bandit.durable import DurableBandit

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
CONDITION_SECONDS = 60.0
"""How long the conditions of a bandit are used again: finding them reads many sums."""


class Metrics:
    """The metrics of a server: its requests, their durations, and the counts of its bandits.

    ``opened`` returns the bandits that are open now; it is called whenever Prometheus asks.
    """

    def __init__(self, opened: Callable[[], list[DurableBandit]]) -> None:
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
        self._labelled: dict[tuple[str, int], tuple[Counter, Histogram]] = {}
        self._registry.register(BanditCounts(opened))
        # Memory, processor time and open files of this process.
        ProcessCollector(registry=self._registry)

    def count(self, operation: str, status: int, seconds: float) -> None:
        """Count one answered request, with its HTTP status and the seconds that it took."""
        labelled = self._labelled.get((operation, status))
        if labelled is None:
            labelled = (
                self._requests.labels(operation, str(status)),
                self._seconds.labels(operation),
            )
            self._labelled[operation, status] = labelled
        labelled[0].inc()
        labelled[1].observe(seconds)

    def text(self) -> bytes:
        """All metrics in the format of Prometheus; reads the store."""
        return generate_latest(self._registry)


class BanditCounts(Collector):
    """What the store and this process know of each bandit."""

    def __init__(self, opened: Callable[[], list[DurableBandit]]) -> None:
        self._opened = opened
        self._conditions: dict[str, tuple[float, dict[str, int]]] = {}

    def describe(self) -> list[Metric]:
        """Nothing: which metrics there are does not depend on a first look at the store."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The metrics of all bandits."""
        events = CounterMetricFamily(
            "submax_events",
            "Events and outcomes of decisions in the store, by kind.",
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
        conditions = GaugeMetricFamily(
            "submax_conditions",
            "What is wrong now and deserves an alarm, by kind.",
            labels=["bandit", "kind"],
        )
        propensity = GaugeMetricFamily(
            "submax_smallest_propensity",
            "The smallest probability with which an action was drawn.",
            labels=["bandit"],
        )
        for bandit in self._opened():
            name = bandit.name
            for kind, count in self._conditions_of(bandit).items():
                conditions.add_metric([name, kind], count)
            smallest = bandit.read.smallest_propensity()
            if smallest is not None:
                propensity.add_metric([name], smallest)
            for kind, count in (dict.fromkeys(ALWAYS_COUNTED, 0) | bandit.counts()).items():
                events.add_metric([name, kind.replace(" ", "_")], count)
            version.add_metric([name], bandit.version)
            for kind, count in bandit.failures.items():
                failures.add_metric([name, kind.replace(" ", "_")], count)
        yield from (events, version, failures, conditions, propensity)

    def _conditions_of(self, bandit: DurableBandit) -> dict[str, int]:
        """How many conditions of each kind the bandit has; 0 for kinds that it had before."""
        at, known = self._conditions.get(bandit.name, (0.0, {}))
        now = time.monotonic()
        if now - at > CONDITION_SECONDS or not at:
            known = dict.fromkeys(known, 0)
            for condition in bandit.conditions():
                known[condition.kind] = known.get(condition.kind, 0) + 1
            self._conditions[bandit.name] = now, known
        return known
