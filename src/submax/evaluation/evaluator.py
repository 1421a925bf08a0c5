"""Evaluates policies batch by batch: what is chosen on a sample, and sums over all rows.

A short log is one batch. A long one, in memory or on disk, is evaluated in batches, by several
processes or by a cluster if it is on disk. Sums of batches add up, and every number of a comparison
follows from them.
"""

import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.errors import InputError, one_line
from submax.core.summary import listed, number
from submax.evaluation.diagnostics import LogSums, PolicySums
from submax.evaluation.disk import pieces
from submax.evaluation.estimators import Evidence, OffPolicyEstimator, make_off_policy
from submax.evaluation.evidence import LogFacts, LoggedEvidence, TunedEstimator
from submax.evaluation.intervals import BLOCKS, NEED_BLOCKS
from submax.evaluation.log import FOLD_SEED, Log, renumbered, uniform_of
from submax.evaluation.propensities import (
    PropensityModel,
    random_rows,
    with_estimated_propensities,
    with_products_of_slots,
)
from submax.evaluation.reward_models import FOLDS
from submax.evaluation.sums import NO_UNITS, Additive, Terms, TermSums, Units
from submax.schema.context import Category
from submax.simulation.runner import dask_executor, local_executor

LOGGING_POLICY = "logging policy"
"""The name, in every comparison, of the policy that wrote the log."""
MEAN = "mean"
"""The estimator of the logging policy: the mean reward."""
WHOLE_ROWS = 1 << 19
"""Up to this many rows a log is one batch, to which models and thresholds are fitted."""
SAMPLE_ROWS = 1 << 19
"""Random rows of a longer log to which reward models and thresholds are fitted."""
TUNING_ROWS = 1 << 17
"""Rows of the sample on which thresholds are chosen."""
BATCH_ROWS = 1 << 17
"""Rows of a longer log that are evaluated together. It does not change any result beyond
rounding."""
TASK_ROWS = 1 << 20
"""Rows that one process evaluates at a time."""
FEWEST_PARALLEL = 1_500_000
"""With fewer rows the work is done in this process: starting others would take longer."""
MOST_CLUSTERS = BLOCKS
"""In a longer log, more clusters are put together at random into as many independent groups."""

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
            f"slices is {columns!r}: give a list of columns",
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
    ) -> tuple["PolicyPlan", Evidence]:
        """Return the plan that is chosen on some ``rows``, and what they say about the policy.

        Thresholds are chosen as for ``decisions`` such decisions.
        """
        about = evidence_about(rows, target)
        estimators = setup.estimators if target is not None else {MEAN: make_off_policy("ips")}
        scaled = _scaled(about, decisions)
        tuned = {label: TunedEstimator.of(one, scaled) for label, one in estimators.items()}
        slices = {}
        for cut in setup.cuts:
            mask = cut.mask(rows.log)
            some = scaled.rows(mask) if mask.any() else scaled
            slices[cut] = {label: TunedEstimator.of(one, some) for label, one in estimators.items()}
        return cls(target, tuned, slices), about


def _scaled(evidence: Evidence, decisions: float) -> Evidence:
    """Return the evidence of a sample with counts that add up to those of all rows."""
    rows = len(evidence.reward)
    known = rows if evidence.counts is None else float(evidence.counts.sum())
    if decisions <= known:
        return evidence
    counts = np.ones(rows) if evidence.counts is None else evidence.counts
    return evidence._replace(counts=counts * (decisions / known))


def evidence_about(rows: LoggedEvidence, target: Any) -> Evidence:
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
        about: Evidence | None = None,
    ) -> PolicySums:
        """Return the sums about a policy; ``base`` are the terms of the baseline."""
        about = about or evidence_about(self.rows, plan.target)
        estimates = {
            label: TermSums.of(
                one.terms(about), base.get(label, base.get(MEAN)), setup.centre, self.units
            )
            for label, one in plan.tuned.items()
        }
        slices = {}
        for cut, tuned in plan.slices.items():
            mask = cut.mask(self.rows.log)
            if mask.any():
                slices[cut] = self._of_slice(about.rows(mask), mask, tuned, setup)
        return PolicySums.of(about, setup.rewards, estimates, slices, self.rows.log)

    def terms(self, plan: PolicyPlan, about: Evidence | None = None) -> dict[str, Terms]:
        """Return the terms of a policy by each estimator."""
        about = about or evidence_about(self.rows, plan.target)
        return {label: one.terms(about) for label, one in plan.tuned.items()}

    def _of_slice(
        self,
        about: Evidence,
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


class BatchSums(Additive, frozen=True):
    """The sums about the log, and about each policy."""

    log: LogSums
    policies: dict[str, PolicySums]


class Groups(NamedTuple):
    """Which rows are independent: clusters, put together if there are very many.

    ``fold`` is that of each group, by which the models that predict its rows were not fitted.
    """

    clusters: int
    fold: NDArray[np.int8]

    def of(self, cluster: Integers) -> Integers:
        """Return the group of each cluster."""
        if self.clusters <= MOST_CLUSTERS:
            return cluster
        return (uniform_of(cluster, 0) * MOST_CLUSTERS).astype(np.int64)

    @property
    def total(self) -> int:
        """The number of groups."""
        return min(self.clusters, MOST_CLUSTERS)


class Work(NamedTuple):
    """All that a process needs to evaluate rows of a long log: what was fitted to the sample.

    ``sampled`` are the numbers of the rows of the sample in the evaluated log, and ``folds`` those
    by which reward models were fitted. Blocks of the bootstrap have ``block_rows``; 0 without one.
    """

    log: Log
    numbers: Integers | int
    logged: LoggedEvidence
    model: PropensityModel | None
    sampled: Integers
    folds: NDArray[np.int8]
    groups: Groups | None
    facts: LogFacts
    setup: Setup
    block_rows: int
    policies: dict[str, PolicyPlan]

    def batch(self, rows: slice) -> Batch:
        """Return some of the rows, with the models that were fitted to the sample."""
        log, place = self.log.rows(rows), np.arange(rows.start, rows.stop)
        numbers = place + self.numbers if isinstance(self.numbers, int) else self.numbers[rows]
        units, group = NO_UNITS, None
        if self.groups is not None and self.log.cluster is not None:
            group = self.groups.of(self.log.cluster[rows])
        fold = self._fold(place, group)
        log = replace(with_estimated_propensities(log, 0, self.model), cluster=group)
        found = self.logged.of_batch(log, numbers, fold, self.facts)
        if group is not None and self.groups is not None:
            units = Units(group, self.groups.total, clusters=True)
        elif self.block_rows:
            total = -(-len(self.log) // self.block_rows)
            single = self.block_rows == 1 and found.log.count is None
            # Rows that stand for several decisions may have been divided.
            row = np.searchsorted(numbers, found.numbers) + rows.start
            units = Units(row // self.block_rows, total, single=single)
        return Batch(found, units)

    def _fold(self, place: Integers, group: Integers | None) -> NDArray[np.int8]:
        """Return the model that predicts each row: for rows of the sample one fitted without it."""
        if group is not None and self.groups is not None:
            return self.groups.fold[group]
        nearest = np.minimum(np.searchsorted(self.sampled, place), len(self.sampled) - 1)
        drawn = (uniform_of(place, FOLD_SEED) * FOLDS).astype(np.int8)
        known = self.sampled[nearest] == place
        found: NDArray[np.int8] = np.where(known, self.folds[nearest], drawn).astype(np.int8)
        return found


def evaluate_rows(first: int, last: int, work: Work) -> BatchSums:
    """Return the sums over the rows from ``first`` to before ``last``."""
    total: BatchSums | None = None
    for begin in range(first, last, BATCH_ROWS):
        batch = work.batch(slice(begin, min(begin + BATCH_ROWS, last)))
        baseline = work.policies[work.setup.baseline]
        about = evidence_about(batch.rows, baseline.target)
        base, found = batch.terms(baseline, about), {}
        for name, one in work.policies.items():
            known = about if one is baseline else None
            found[name] = batch.sums(one, base, work.setup, known)
        both = BatchSums(LogSums.of(batch.rows.log, work.setup.centre), found)
        total = both if total is None else total + both
        work.log.release()
    if total is None:
        raise ValueError("there are no rows to evaluate")
    return total


class EvaluatedRows:
    """Rows on which policies are evaluated, and the models that are fitted to them or a sample.

    ``numbers`` are those of the rows in the log of the caller, or the number of the first one.
    ``whole`` says that an estimator needs all rows together.
    """

    def __init__(
        self,
        log: Log,
        numbers: Integers | int,
        seed: int,
        reward_model: Any,
        whole: bool,
        progress: Progress | None = None,
    ) -> None:
        self.log, self._numbers, self._progress = log, numbers, progress
        self.is_long = len(log) > WHOLE_ROWS and not whole
        place = random_rows(len(log), SAMPLE_ROWS if self.is_long else len(log), seed)
        sample = log.rows(place) if self.is_long or log.disk is not None else log
        groups, clusters = None, 0
        if self.is_long and log.cluster is not None:
            clusters = int(log.cluster.max()) + 1
            groups = Groups(clusters, np.zeros(0, dtype=np.int8))
            group = groups.of(log.cluster[place])
            sample = replace(sample, cluster=renumbered(group))
        sample = with_products_of_slots(sample)
        gaps = bool(np.isnan(sample.propensity).any())
        self._model = PropensityModel(sample, seed) if gaps else None
        sample = with_estimated_propensities(sample, seed, self._model)
        of_caller = place + numbers if isinstance(numbers, int) else numbers[place]
        self.logged = LoggedEvidence(sample, seed, reward_model, of_caller, self.is_long)
        if groups is not None:
            folds = np.zeros(groups.total, dtype=np.int8)
            drawn = uniform_of(np.arange(groups.total), FOLD_SEED) * FOLDS
            folds[:] = drawn.astype(np.int8)
            folds[group] = self.logged.fold
            groups = groups._replace(fold=folds)
        self._place, self._groups = place, groups
        self._facts = self._scanned() if self.is_long else None
        self._tuning = self.logged
        if self._facts is not None:
            self.logged.untaken = self._facts.untaken
            if len(self.logged.log) > TUNING_ROWS:
                few = random_rows(len(self.logged.log), TUNING_ROWS, seed)
                self._tuning = self._of_sample(few)

    def _scanned(self) -> LogFacts:
        """Return what a sample does not know: the range of the rewards, and untaken choices."""
        log, low, high = self.log, np.inf, -np.inf
        untaken = [np.ones(len(one.choices), dtype=bool) for one in log.schema.menu.slots]
        for rows in pieces(len(log)):
            low, high = min(low, log.reward[rows].min()), max(high, log.reward[rows].max())
            for slot, never in enumerate(untaken):
                never[np.unique(log.action[rows, slot]).astype(np.int64)] = False
            log.release()
        return LogFacts(log.problem.scale.bounds or (float(low), float(high)), untaken)

    def _of_sample(self, rows: Integers) -> LoggedEvidence:
        logged, facts = self.logged, self._facts
        if facts is None:
            raise ValueError("only a long log has a sample")
        return logged.of_batch(
            logged.log.rows(rows), logged.numbers[rows], logged.fold[rows], facts
        )

    def evaluated(
        self, names: Iterable[str], targets: Targets, setup: Setup
    ) -> tuple[LogSums, Iterable[tuple[str, PolicySums]]]:
        """Return the sums about the log and about each policy."""
        if not self.is_long:
            return LogSums.of(self.logged.log, setup.centre), self._one_by_one(
                names, targets, setup
            )
        names, decisions = [*names], self.log.decisions
        policies = {
            name: PolicyPlan.of(targets(name), self._tuning, decisions, setup)[0]
            for name in dict.fromkeys([setup.baseline, *names])
        }
        found = self._summed(policies, setup)
        return found.log, ((name, found.policies[name]) for name in names)

    def _one_by_one(
        self, names: Iterable[str], targets: Targets, setup: Setup
    ) -> Iterator[tuple[str, PolicySums]]:
        log, count = self.logged.log, len(self.logged.log)
        units, length = NO_UNITS, -(-count // BLOCKS)
        if log.cluster is not None:
            units = Units(log.cluster, int(log.cluster.max()) + 1, clusters=True)
        elif setup.interval in NEED_BLOCKS:
            units = Units(np.arange(count) // length, -(-count // length), single=length == 1)
        batch = Batch(self.logged, units)

        def planned(name: str) -> tuple[PolicyPlan, Evidence]:
            return PolicyPlan.of(targets(name), self.logged, log.decisions, setup)

        known = {setup.baseline: planned(setup.baseline)}
        base = batch.terms(*known[setup.baseline])
        for name in names:
            plan, about = known.pop(name) if name in known else planned(name)
            yield name, batch.sums(plan, base, setup, about)

    def _summed(self, policies: dict[str, PolicyPlan], setup: Setup) -> BatchSums:
        """Return the sums over all rows, computed by all processes."""
        log, rows = self.log, len(self.log)
        if self._facts is None:
            raise ValueError("only a long log is evaluated in batches")
        # The sample is not sent to the processes: they need only what was fitted to it.
        nothing = self._of_sample(np.arange(1))
        work = Work(
            log,
            self._numbers,
            nothing,
            self._model,
            self._place,
            np.resize(self.logged.fold, len(self._place)),
            self._groups,
            self._facts,
            setup,
            -(-rows // BLOCKS) if setup.interval in NEED_BLOCKS else 0,
            policies,
        )
        jobs, scheduler = (1, None) if log.disk is None else (log.disk.jobs, log.disk.scheduler)
        jobs = jobs if rows >= FEWEST_PARALLEL else 1
        if jobs > 1 and scheduler is None:
            _check_sendable(policies)
        tasks = [(first, min(first + TASK_ROWS, rows), work) for first in range(0, rows, TASK_ROWS)]
        total: BatchSums | None = None
        with executed(jobs, scheduler) as run:
            for done, found in enumerate(run(evaluate_rows, tasks)):
                if self._progress is not None:
                    self._progress("part", done, len(tasks))
                total = found if total is None else total + found
        if total is None:
            raise ValueError("there are no rows to evaluate")
        return total


def _check_sendable(policies: Mapping[str, PolicyPlan]) -> None:
    """Refuse a policy that cannot be sent to other processes, such as a lambda."""
    for name, plan in policies.items():
        try:
            pickle.dumps(plan.target)
        except Exception as error:
            raise InputError(
                f"the policy {name!r} cannot be sent to other processes "
                f"({one_line(error)}): define it in a file, or give jobs=1"
            ) from error


Run = Callable[[Callable[..., Any], list[tuple[Any, ...]]], Iterator[Any]]
"""Calls a function for each tuple of arguments, and yields the results in their order."""


@contextmanager
def executed(jobs: int, scheduler: str | None) -> Iterator[Run]:
    """Yield a function that runs tasks: here, in local processes, or on a Dask cluster."""
    if scheduler is None and jobs == 1:
        yield lambda function, tasks: (function(*task) for task in tasks)
        return
    chosen = local_executor(jobs) if scheduler is None else dask_executor(scheduler)
    with chosen as executor:

        def run(function: Callable[..., Any], tasks: list[tuple[Any, ...]]) -> Iterator[Any]:
            # A result that was yielded is not kept, so memory does not grow with the tasks.
            futures = deque(executor.submit(function, *task) for task in tasks)
            while futures:
                yield futures.popleft().result()

        yield run
