"""Evaluates policies batch by batch: what is chosen on a sample, and sums over all rows.

A log in memory is one batch, or several if it is long; a log of files is read again in batches, by
several processes or by a cluster. Sums of batches add up, and every number of a comparison follows
from them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.errors import InputError
from submax.core.summary import listed, number
from submax.evaluation.diagnostics import LogSums, PolicySums
from submax.evaluation.estimators import OffPolicyEstimator, make_off_policy
from submax.evaluation.evidence import LogFacts, LoggedEvidence, PolicyEvidence, TunedEstimator
from submax.evaluation.intervals import BLOCKS, NEED_BLOCKS
from submax.evaluation.log import Log
from submax.evaluation.propensities import random_rows
from submax.evaluation.sums import NO_UNITS, Terms, TermSums, Units
from submax.schema.context import Category

LOGGING_POLICY = "logging policy"
"""The name, in every comparison, of the policy that wrote the log."""
MEAN = "mean"
"""The estimator of the logging policy: the mean reward."""
SAMPLE_ROWS = 1 << 19
"""Rows of the sample of a log of files on which policies, reward models and thresholds are fitted,
and up to which a log in memory is one batch."""
TUNING_ROWS = 1 << 17
"""Rows of a longer log in memory on which thresholds are chosen."""
BATCH_ROWS = 1 << 17
"""Rows that are evaluated together. It does not change any result beyond rounding."""

MOST_SLICES = 12
"""Values of a category that are slices of their own, the most frequent ones. The rows of the
others are one slice together."""
QUANTILES = (0.25, 0.5, 0.75)
"""A number is cut at its quartiles."""


class Slice(NamedTuple):
    """Rows whose context field ``column`` has a value with the name ``value``.

    These are the categories ``codes``, or the numbers above ``low`` and up to ``high``.
    """

    column: str
    value: str
    place: int
    codes: tuple[int, ...] | None
    low: float = -np.inf
    high: float = np.inf

    def mask(self, log: Log) -> Booleans:
        """Return which rows of a log are in the slice."""
        values = log.context[:, self.place]
        if self.codes is None:
            return (values > self.low) & (values <= self.high)
        return np.isin(values.astype(np.int64), self.codes)


def check_slices(columns: Sequence[str], known: Sequence[str]) -> None:
    """Refuse a column that is not one of the ``known`` fields of the context."""
    if isinstance(columns, str):
        raise InputError(
            f"slices is {columns!r}, and must be a list of columns: put it into a list, [...]",
            parameter="slices",
        )
    for column in columns:
        if column not in known:
            raise InputError(
                f"the slice is by {column!r}; a column of the context is allowed "
                f"({listed(known) or 'this log has none'}): name one of them, or add the column to "
                "the context",
                parameter="slices",
            )


def slices_of(log: Log, columns: Sequence[str]) -> list[Slice]:
    """Return the slices of a log by each of the columns, without empty slices."""
    found = []
    for column in columns:
        place = log.schema.context.names.index(column)
        field, values = log.schema.context.fields[place], log.context[:, place]
        if isinstance(field, Category):
            counts = np.bincount(values.astype(np.int64), minlength=len(field.values))
            order = [int(one) for one in np.argsort(-counts, kind="stable") if counts[one]]
            first, rest = order[:MOST_SLICES], order[MOST_SLICES:]
            found += [Slice(column, field.values[one], place, (one,)) for one in first]
            if rest:
                found.append(Slice(column, f"{len(rest)} other values", place, tuple(rest)))
        else:
            edges = np.unique(np.quantile(values, QUANTILES).astype(values.dtype))
            ends = [-np.inf, *map(float, edges), np.inf]
            words = [f"up to {number(edges[0])}"]
            words += [f"above {number(low)}, up to {number(high)}" for low, high in pairwise(edges)]
            words.append(f"above {number(edges[-1])}")
            found += [
                Slice(column, word, place, None, *range_of)
                for word, range_of in zip(words, pairwise(ends), strict=True)
            ]
    return [one for one in found if one.mask(log).any()]


class Setup(NamedTuple):
    """The estimators by label, the baseline of differences, the slices, and the kind of interval.

    ``cuts`` are the slices; ``centre`` is a number near the rewards, and ``rewards`` are those to
    distinguish, sorted.
    """

    estimators: dict[str, OffPolicyEstimator]
    baseline: str
    cuts: Sequence[Slice]
    interval: str
    centre: float
    rewards: Floats


class PolicyPlan(NamedTuple):
    """A policy that has learned, and the estimators tuned for it, of all rows and of each slice.

    The ``target`` is None for the logging policy.
    """

    target: Any
    tuned: dict[str, TunedEstimator]
    slices: dict[Slice, dict[str, TunedEstimator]]

    @classmethod
    def of(
        cls, target: Any, rows: LoggedEvidence, decisions: float, setup: Setup
    ) -> tuple["PolicyPlan", PolicyEvidence]:
        """Return the plan that is chosen on some ``rows``, and what they say about the policy.

        Thresholds are chosen as for ``decisions`` such decisions.
        """
        about = evidence_about(rows, target)
        estimators = setup.estimators if target is not None else {MEAN: make_off_policy("ips")}
        scaled = about._replace(evidence=_scaled(about.evidence, decisions))
        tuned = {label: TunedEstimator.of(one, scaled) for label, one in estimators.items()}
        slices = {}
        for cut in setup.cuts:
            mask = cut.mask(rows.log)
            some = scaled.rows(mask) if mask.any() else scaled
            slices[cut] = {label: TunedEstimator.of(one, some) for label, one in estimators.items()}
        return cls(target, tuned, slices), about


def _scaled(evidence: Any, decisions: float) -> Any:
    """Return the evidence of a sample with counts that add up to those of all rows."""
    rows = len(evidence.reward)
    known = rows if evidence.counts is None else float(evidence.counts.sum())
    if decisions <= known:
        return evidence
    counts = np.ones(rows) if evidence.counts is None else evidence.counts
    return evidence._replace(counts=counts * (decisions / known))


def evidence_about(rows: LoggedEvidence, target: Any) -> PolicyEvidence:
    """Return what rows say about a policy that has learned, or about the logging policy (None)."""
    return rows.about_logging_policy() if target is None else rows.about(target)


class Batch(NamedTuple):
    """Rows that are evaluated together, and which of their units are independent."""

    rows: LoggedEvidence
    units: Units

    def sums(
        self,
        plan: PolicyPlan,
        base: Mapping[str, Terms],
        setup: Setup,
        about: PolicyEvidence | None = None,
    ) -> PolicySums:
        """Return the sums about a policy; ``base`` are the terms of the baseline."""
        about = about or evidence_about(self.rows, plan.target)
        estimates = {}
        for label, one in plan.tuned.items():
            terms = one.terms(about)
            paired = base.get(label, base.get(MEAN))
            estimates[label] = TermSums.of(terms, paired, setup.centre, self.units)
        slices = {}
        for cut, tuned in plan.slices.items():
            mask = cut.mask(self.rows.log)
            if mask.any():
                slices[cut] = self._of_slice(about.rows(mask), mask, tuned, setup)
        return PolicySums.of(about, setup.rewards, estimates, slices, self.rows.log)

    def terms(self, plan: PolicyPlan, about: PolicyEvidence | None = None) -> dict[str, Terms]:
        """Return the terms of a policy by each estimator."""
        about = about or evidence_about(self.rows, plan.target)
        return {label: one.terms(about) for label, one in plan.tuned.items()}

    def _of_slice(
        self,
        about: PolicyEvidence,
        mask: Booleans,
        tuned: Mapping[str, TunedEstimator],
        setup: Setup,
    ) -> PolicySums:
        units = self.units
        if units.number is not None:
            units = units._replace(number=units.number[mask])
        estimates = {
            label: TermSums.of(one.terms(about), None, setup.centre, units)
            for label, one in tuned.items()
        }
        return PolicySums.of(about, setup.rewards, estimates, {})


Targets = Callable[[str], Any]
"""Returns the policy of a name after it has learned; None for the logging policy."""


Progress = Callable[[str, int, int], None]
"""Called before each step with what is done, how many steps are done, and how many there are."""


class MemoryBatches:
    """The evaluated rows of a log in memory.

    They are one batch, unless there are many rows and all estimators add up.
    """

    def __init__(self, logged: LoggedEvidence, whole: bool, interval: str) -> None:
        self.logged, log = logged, logged.log
        self.sample, self._whole, self._interval = logged, whole, interval
        self._log = log
        if not whole and len(log) > SAMPLE_ROWS:
            rows = random_rows(len(log), TUNING_ROWS, 0)
            self.sample = self._of(rows)

    @property
    def decisions(self) -> float:
        """The number of evaluated decisions."""
        return float(self._log.decisions)

    def _of(self, rows: Integers) -> LoggedEvidence:
        facts = LogFacts(self.logged.bounds or _range(self._log.reward), self.logged.untaken)
        fold = self.logged.fold[rows]
        return self.logged.of_batch(self._log.rows(rows), self.logged.numbers[rows], fold, facts)

    def _batches(self) -> Iterator[Batch]:
        log, count = self._log, len(self._log)
        length = -(-count // BLOCKS)
        units = NO_UNITS
        if log.cluster is not None:
            units = Units(log.cluster, int(log.cluster.max()) + 1, clusters=True)
        elif self._interval in NEED_BLOCKS:
            units = Units(np.arange(count) // length, -(-count // length), single=length == 1)
        if self.sample is self.logged:
            yield Batch(self.logged, units)
            return
        for first in range(0, count, BATCH_ROWS):
            rows = np.arange(first, min(first + BATCH_ROWS, count))
            number = None if units.number is None else units.number[rows]
            yield Batch(self._of(rows), units._replace(number=number))

    def evaluated(
        self, names: Iterable[str], targets: Targets, setup: Setup
    ) -> tuple[LogSums, Iterable[tuple[str, PolicySums]]]:
        """Return the sums about the log and about each policy; policies learn one by one."""
        return LogSums.of(self._log, setup.centre), self._policies(names, targets, setup)

    def _policies(
        self, names: Iterable[str], targets: Targets, setup: Setup
    ) -> Iterator[tuple[str, PolicySums]]:
        plans = {setup.baseline: self._plan(targets(setup.baseline), setup)}
        plan, about = plans[setup.baseline]
        base = [batch.terms(plan, self._known(batch, about)) for batch in self._batches()]
        for name in names:
            plan, about = plans.pop(name) if name in plans else self._plan(targets(name), setup)
            total: PolicySums | None = None
            for batch, paired in zip(self._batches(), base, strict=True):
                found = batch.sums(plan, paired, setup, self._known(batch, about))
                total = found if total is None else total + found
            if total is not None:
                yield name, total

    def _plan(self, target: Any, setup: Setup) -> tuple[PolicyPlan, PolicyEvidence]:
        return PolicyPlan.of(target, self.sample, self.decisions, setup)

    def _known(self, batch: Batch, about: PolicyEvidence) -> PolicyEvidence | None:
        """Return the evidence of the sample if the batch is the sample."""
        return about if batch.rows is self.sample else None


def _range(values: NDArray[Any]) -> tuple[float, float]:
    return float(values.min()), float(values.max())
