"""What a log says about policies, batch by batch, and the sums of all batches.

Reward models, propensities and thresholds are fitted to a sample. A short log is one batch, which
is also the sample. A long one is evaluated in batches, by several threads or on a Dask cluster.
Sums of batches add up, and every number of a comparison follows from them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.errors import InputError
from submax.core.numerics import pieces
from submax.core.summary import listed, number
from submax.evaluation.diagnostics import LogSums, PolicySums
from submax.evaluation.estimators import Evidence, OffPolicyEstimator, make_off_policy, tuned
from submax.evaluation.log import (
    FOLD_SEED,
    Log,
    divided_by_fold,
    trajectory_weights,
    uniform_of,
)
from submax.evaluation.policies import Rows, Target, among_eligible
from submax.evaluation.propensities import (
    PropensityModel,
    SlotPropensities,
    random_rows,
    with_estimated_propensities,
    with_products_of_slots,
)
from submax.evaluation.reward_models import FOLDS, action_code, by_fold, folds_of, reward_models
from submax.schema.context import Category
from submax.schema.model import reindexed
from submax.schema.trained_policy import TrainedPolicy
from submax.simulation.runner import available_cores, dask_executor
from submax.statistics.intervals import BLOCKS
from submax.statistics.sums import Additive, Terms, TermSums, Units, total

MEAN = "mean"
"""The estimator of the logging policy: the mean reward."""
WHOLE_ROWS = 1 << 19
"""Up to this many rows a log is one batch, to which models and thresholds are fitted."""
SAMPLE_ROWS = 1 << 19
"""Random rows of a longer log to which reward models and thresholds are fitted."""
PARTS_SENT = 32
"""Parts of a log that are sent to a cluster at a time."""
TUNING_ROWS = 1 << 17
"""Rows of the sample on which thresholds are chosen."""
BATCH_ROWS = 1 << 17
"""Rows of a longer log that are evaluated together. It does not change any result beyond
rounding."""
MOST_CLUSTERS = BLOCKS
"""In a longer log, more clusters are put together at random into as many independent groups."""
MOST_SLICES = 12
"""Values of a category that are slices of their own, the most frequent ones. The rows of the
others are one slice together."""
QUANTILES = (0.25, 0.5, 0.75)
"""A number is cut at its quartiles."""


class Slice(NamedTuple):
    """Rows whose context field ``column``, the ``place``-th one, has a value of this name.

    These are the categories ``codes``. A number has the code of its part between the ``edges``.
    """

    column: str
    value: str
    place: int
    codes: tuple[int, ...]
    edges: tuple[float, ...] = ()

    def mask(self, log: Log) -> Booleans:
        """Return which rows of a log are in the slice."""
        values = log.context[:, self.place]
        codes = np.searchsorted(self.edges, values) if self.edges else values.astype(np.int64)
        return np.isin(codes, self.codes)


def check_slices(columns: Sequence[str], known: Sequence[str]) -> None:
    """Refuse a column that is not among the ``known`` fields of the context."""
    if isinstance(columns, str):
        raise InputError(f"slices is {columns!r}: give a list of columns", parameter="slices")
    for column in columns:
        if column not in known:
            raise InputError(
                f"the slice {column!r} is not a column of the context "
                f"({listed(known) or 'this log has no context'}): name such a column, or add this "
                "one to the context",
                parameter="slices",
            )


def slices_of(log: Log, columns: Sequence[str]) -> list[Slice]:
    """Return the slices of a log by each of the columns, without empty slices."""
    slices = []
    for column in columns:
        place = log.schema.context.names.index(column)
        field, values = log.schema.context.fields[place], log.context[:, place]
        if isinstance(field, Category):
            counts = np.bincount(values.astype(np.int64), minlength=len(field.values))
            order = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)].tolist()
            slices += [
                Slice(column, field.values[code], place, (code,)) for code in order[:MOST_SLICES]
            ]
            rest = tuple(order[MOST_SLICES:])
            slices.append(Slice(column, f"{len(rest)} other values", place, rest))
        else:
            edges = tuple(np.unique(np.quantile(values, QUANTILES).astype(values.dtype)).tolist())
            words = [number(edge) for edge in edges]
            between = [f"above {low}, up to {high}" for low, high in pairwise(words)]
            names = [f"up to {words[0]}", *between, f"above {words[-1]}"]
            slices += [
                Slice(column, name, place, (code,), edges) for code, name in enumerate(names)
            ]
    return [cut for cut in slices if cut.mask(log).any()]


class Setup(NamedTuple):
    """What is computed of every policy.

    ``estimators`` are by label, ``baseline`` is the policy from which differences are taken,
    ``slices`` are parts of the rows, ``centre`` is a number near the rewards, and ``rewards`` are
    those to distinguish, sorted.
    """

    estimators: Mapping[str, OffPolicyEstimator]
    baseline: str
    slices: Sequence[Slice]
    centre: float
    rewards: Floats


Plan = dict[Slice | None, dict[str, Callable[[Evidence], Terms]]]
"""The estimators that were tuned for a policy, of all rows (None) and of each slice."""
Progress = Callable[[str, int, int], None]
"""Called before each step with what is done, how many steps are done, and how many there are."""


def tuned_plan(
    about: Evidence, log: Log, logging: bool, setup: Setup, decisions: float = 0.0
) -> Plan:
    """Return the estimators tuned to some rows, as if they stood for so many ``decisions``."""
    known = total(about.reward, about.counts)
    about = about._replace(counts=about.counts * max(decisions / known, 1.0))
    plan: Plan = {}
    for cut in (None, *setup.slices):
        mask = None if cut is None else cut.mask(log)
        some = about if mask is None or not mask.any() else about.rows(mask)
        estimators = {MEAN: make_off_policy("ips")} if logging else setup.estimators
        plan[cut] = {label: tuned(one, some) for label, one in estimators.items()}
    return plan


class BatchSums(Additive, frozen=True):
    """The sums about the log, and about each policy: of all rows (None) and of each slice."""

    log: LogSums
    policies: dict[str, dict[Slice | None, PolicySums]]


MOST_LISTED = 4096
"""Up to this many joint actions the probabilities of all of them are computed in every row. For
more, actions are drawn: a table of 4096 probabilities takes 32 kB per row."""
NUMBERS_PER_PART = 1 << 22
"""At most this many probabilities or numbers of contexts are in memory together: 32 MB."""
PART_ROWS = 1 << 18
"""At most this many rows are in memory together."""
DRAWS = 32
"""Actions drawn from the policy in each row if joint actions are not listed. The estimators average
over rows, so few draws per row are enough."""
NUMBERS_PER_DRAW = 64
"""Numbers that one drawn action is assumed to take in memory, when rows are divided into parts."""
MOST_KEPT = 1 << 24
"""Up to this many numbers the features of all rows are kept for the next policy: 128 MB."""


class Batch:
    """Rows of a log that are evaluated together, with all that is the same for every policy.

    ``numbers [n]`` are those of the rows in the evaluated log, and ``units`` say which rows are
    independent. Every row is predicted by a reward model that was fitted without it.
    """

    def __init__(self, fitted: "Evaluator", log: Log, numbers: Integers, units: Units) -> None:
        self.fitted, self.log, self.numbers, self.units = fitted, log, numbers, units
        self._fold = folds_of(log)
        self._slot_propensity = fitted.slots.of(log)
        # Not [seed, 0]: that is the stream of the seed itself, from which splits are drawn.
        self._rng = np.random.default_rng([fitted.seed, 1 + int(numbers[0])])
        self._known: dict[int, tuple[Floats, Floats]] = {}

    def about(self, target: Target | None) -> Evidence:
        """Return the evidence about a policy, or about the one that wrote the log (None)."""
        log = self.log
        parts = zip(*(self._of_part(target, rows) for rows in self._parts()), strict=True)
        probability, predicted, expected, of_choices, unsupported = map(np.concatenate, parts)
        weight, of_slots = probability / log.propensity, self._slot_propensity
        session = None if target is None else log.session
        return Evidence(
            reward=log.reward,
            weight=weight,
            probability=probability,
            predicted=predicted,
            expected=expected,
            slot_weight=None if of_slots is None else of_choices / of_slots,
            bounds=self.fitted.bounds,
            counts=log.counts,
            sessions=None if session is None else trajectory_weights(weight, session),
            unsupported=unsupported,
            sampling_weight=1.0 if log.sampling_weight is None else log.sampling_weight,
            covariates=log.covariates,
        )

    def sums(
        self, targets: Mapping[str, Target | None], plans: Mapping[str, Plan], setup: Setup
    ) -> BatchSums:
        """Return the sums about the log and the policies; those without a plan get one here."""
        sums: dict[str, dict[Slice | None, PolicySums]] = {}
        baseline: dict[str, Terms] = {}
        for name in dict.fromkeys([setup.baseline, *targets]):
            about = self.about(targets[name])
            plan = plans.get(name) or tuned_plan(about, self.log, targets[name] is None, setup)
            terms = {label: terms_of(about) for label, terms_of in plan[None].items()}
            baseline = baseline or terms
            estimates = {
                label: TermSums.of(
                    one, baseline.get(label, baseline.get(MEAN)), setup.centre, self.units
                )
                for label, one in terms.items()
            }
            sums[name] = {
                None: PolicySums.of(about, setup.rewards, estimates, self.units, self.log)
            }
            for cut in setup.slices:
                mask = cut.mask(self.log)
                if mask.any():
                    some, units = about.rows(mask), self.units.rows(mask)
                    estimates = {
                        label: TermSums.of(terms_of(some), None, setup.centre, units)
                        for label, terms_of in plan[cut].items()
                    }
                    sums[name][cut] = PolicySums.of(some, setup.rewards, estimates, units, None)
        return BatchSums(LogSums.of(self.log, setup.centre), sums)

    def _parts(self) -> Iterator[slice]:
        """Return the rows in parts whose probabilities fit into memory."""
        fitted, width = self.fitted, max(self.log.schema.context.width, 1)
        size = fitted.space.size if fitted.lists else DRAWS * NUMBERS_PER_DRAW
        return pieces(len(self.log), max(min(NUMBERS_PER_PART // max(size, width), PART_ROWS), 1))

    def _features(self, rows: slice, encoded: NDArray[np.float32]) -> tuple[Floats, Floats]:
        """Return the features of reward models, and q̂ of some rows.

        They are kept for the next policy if the rows are not very many.
        """
        if rows.start in self._known:
            return self._known[rows.start]
        models, fold = self.fitted.models, self._fold[rows]
        features = by_fold(models, "features", fold, encoded)
        predicted = by_fold(models, "predict", fold, features, self.log.action[rows])
        if len(self.log) * features.shape[1] <= MOST_KEPT:
            self._known[rows.start] = features, predicted
        return features, predicted

    def _of_part(self, target: Target | None, rows: slice) -> tuple[Floats, ...]:
        """Return what depends on the policy and on models, of a part of the rows.

        It is the probability of the action, the prediction of its reward and that for the policy,
        the probability of the choice of each slot, and that of choices which no row took.
        """
        log, fitted, fold = self.log, self.fitted, self._fold[rows]
        models, code, action = fitted.models, fitted.code, log.action[rows]
        encoded = log.schema.context.encode_rows(log.context[rows])
        features, predicted = self._features(rows, encoded)
        if target is None:
            of_slots, none = self._slot_propensity, np.zeros(len(action))
            of_choices = none if of_slots is None else of_slots[rows]
            return log.propensity[rows], predicted, predicted, of_choices, none
        if fitted.lists:
            table = self._table(target, rows, encoded)
            index, marginals = fitted.space.index(action.astype(np.int64)), code.marginals(table)
            expected = by_fold(models, "expected", fold, features, table, marginals)
            of_choices = np.take_along_axis(marginals, code.places(action), axis=1)
            # Slots are treated as independent.
            untaken = np.add.reduceat(marginals * fitted.untaken, code.first, axis=1)
            unsupported = 1 - np.prod(1 - untaken, axis=1)
            probability = table[np.arange(len(index)), index]
            return probability, predicted, expected, of_choices, unsupported
        if not isinstance(target, TrainedPolicy):
            raise InputError(
                f"this log has {fitted.space.size} joint actions or real-valued ones, too many to "
                f"list the probabilities of all (at most {MOST_LISTED}): evaluate a policy by name"
            )
        probability, drawn = self._drawn(target, encoded, action)
        repeated = np.repeat(features, DRAWS, axis=0)
        of_draws = by_fold(models, "predict", np.repeat(fold, DRAWS), repeated, drawn)
        expected = of_draws.reshape(-1, DRAWS).mean(axis=1)
        places = code.places(drawn).reshape(len(action), DRAWS, -1)
        of_choices = (places == code.places(action)[:, None]).mean(axis=1)
        unsupported = fitted.untaken[places].any(axis=2).mean(axis=1)
        return probability, predicted, expected, of_choices, unsupported

    def _table(self, target: Target, rows: slice, encoded: NDArray[np.float32]) -> Floats:
        """Return the probabilities of all joint actions, in each row among the eligible ones."""
        log = self.log
        sets, one_set = log.eligible_set[rows], len(log.eligible_sets) == 1
        if isinstance(target, TrainedPolicy):
            if one_set:
                return target.probabilities(encoded)
            table = np.empty((len(encoded), self.fitted.space.size))
            for place in np.unique(sets):
                same = sets == place
                table[same] = target.probabilities(encoded[same], log.eligible_sets[place])
            return table
        columns = None if log.probability is None else log.probability[rows]
        known = Rows(log.schema, log.context[rows], encoded, self.numbers[rows], columns)
        table = target(known)
        return table if one_set else among_eligible(table, self._eligible_masks[sets])

    def _drawn(
        self, target: TrainedPolicy, encoded: NDArray[np.float32], action: NDArray[Any]
    ) -> tuple[Floats, NDArray[Any]]:
        """Return the density of each row's action under a policy, and actions drawn from it."""
        space = self.fitted.space
        if len(self.log.eligible_sets) > 1:
            size = "real-valued parts" if space.reals else f"{space.size} joint actions"
            raise InputError(
                f"this log has eligible choices and {size}: leave the column of eligible choices "
                f"out, which works for up to {MOST_LISTED} joint actions without real-valued parts"
            )
        model, policy = target.model, target.policy
        context = model.standardization.apply(encoded.astype(np.float64))
        known, indices = reindexed(action, model.active)
        probability = np.zeros(len(action))
        if known.any():
            actions = indices.astype(space.dtype)[None]
            log_prob = policy.log_prob(model.state, context[known][None], actions)
            probability[known] = np.exp(log_prob[0])
        repeated = np.repeat(context, DRAWS, axis=0)[None]
        drawn = policy.act(model.state, repeated, self._rng).action[0]
        for slot, active in enumerate(model.active):
            drawn[:, slot] = np.array(active)[drawn[:, slot].astype(np.int64)]
        return probability, drawn

    @cached_property
    def _eligible_masks(self) -> Booleans:
        """Which of the M joint actions are in each set of eligible choices, ``[sets, M]``."""
        slots = enumerate(self.fitted.space.listing().T)
        masks = [self.log.eligible_choices(slot)[:, chosen] for slot, chosen in slots]
        found: Booleans = np.all(masks, axis=0)
        return found


Part = tuple[Log, Integers, Integers]
"""Rows of a log, their numbers in it, and the keys that decide about their folds."""


class Evaluator:
    """A log on which policies are evaluated, and what is fitted to it or to a sample of its rows.

    A long log is evaluated in batches, unless it has sessions, whose rows belong together.
    Intervals by ``blocks`` of rows need sums over them.
    """

    def __init__(
        self,
        log: Log,
        seed: int = 0,
        reward_model: Any = None,
        blocks: bool = False,
        progress: Progress | None = None,
        scheduler: str | None = None,
    ) -> None:
        self.log, self.seed, self._rows = log, seed, len(log)
        self.is_long = log.session is None and len(log) > WHOLE_ROWS
        self._blocks, self._progress, self._scheduler = blocks, progress, scheduler
        self.clusters = 0 if log.cluster is None else int(log.cluster.max()) + 1
        # The log may have choices that are no longer active: policies give them probability 0.
        menu = log.schema.menu.revived
        self.space, self.code = menu.space(menu.active), action_code(menu)
        self.lists = not self.space.reals and self.space.size <= MOST_LISTED
        number = random_rows(len(log), SAMPLE_ROWS if self.is_long else len(log), seed)
        sample = log.rows(number) if self.is_long or log.folder is not None else log
        sample = with_products_of_slots(sample)
        gaps = bool(np.isnan(sample.propensity).any())
        self._propensities = PropensityModel(sample, seed) if gaps else None
        key = self._key(number)
        self._keys, first, group = np.unique(key, return_index=True, return_inverse=True)
        groups = None if log.cluster is None else group
        self._folds = folds_of(replace(sample, cluster=groups))[first]
        sample, number, units = self._prepared(sample, number, key)
        self.model_name, self.models = reward_models(sample, reward_model, seed)
        self.slots = SlotPropensities(sample, seed)
        self.bounds, self.untaken = self._scanned(sample)
        self.sample = Batch(self, sample, number, units)

    def _prepared(self, log: Log, number: Integers, key: Integers) -> tuple[Log, Integers, Units]:
        """Return rows of the log, and their numbers, with all that models and estimators need."""
        log, cluster = with_estimated_propensities(log, self.seed, self._propensities), log.cluster
        if self.is_long:
            # A row of the sample is predicted by a model that was fitted without it.
            nearest = np.minimum(np.searchsorted(self._keys, key), len(self._keys) - 1)
            drawn = (uniform_of(key, FOLD_SEED) * FOLDS).astype(np.int8)
            fold = np.where(self._keys[nearest] == key, self._folds[nearest], drawn)
            cluster = None if cluster is None else key
            log = replace(log, cluster=cluster, fold=fold)
        if log.count is not None and cluster is None:
            # Rows that stand for several decisions are divided among the folds.
            log, _, row = divided_by_fold(log, FOLDS, number)
            number = number[row]
        units = Units()
        if cluster is not None:
            groups = min(self.clusters, MOST_CLUSTERS) if self.is_long else self.clusters
            units = Units(cluster, groups, clusters=True)
        elif self._blocks:
            row = number if self.is_long else np.arange(len(log))
            rows = self._rows if self.is_long else len(log)
            length = -(-rows // BLOCKS)
            units = Units(row // length, -(-rows // length))
        return log, number, units

    def _key(self, number: Integers) -> Integers:
        """Return what decides about the folds of rows: their numbers, or groups of clusters."""
        if self.log.cluster is None:
            return number
        cluster = self.log.cluster[number]
        if self.clusters > MOST_CLUSTERS:
            return (uniform_of(cluster, 0) * MOST_CLUSTERS).astype(np.int64)
        return cluster

    def _scanned(self, sample: Log) -> tuple[tuple[float, float] | None, Booleans]:
        """Return the range of the rewards, and which choices of all slots no row took."""
        bounds, low, high = self.log.problem.scale.bounds, np.inf, -np.inf
        untaken = np.ones(sum(self.code.sizes), dtype=bool)
        for log in self.log.batches() if self.is_long else [sample]:
            low, high = min(low, log.reward.min()), max(high, log.reward.max())
            untaken[self.code.places(log.action)] = False
        return bounds or ((float(low), float(high)) if self.is_long else None), untaken

    def evaluated(self, targets: Mapping[str, Target | None], setup: Setup) -> BatchSums:
        """Return the sums about the log and the policies; the baseline must be among these."""
        if not self.is_long:
            return self.sample.sums(targets, {}, setup)
        few = random_rows(len(self.sample.log), TUNING_ROWS, self.seed)
        tuning = Batch(self, self.sample.log.rows(few), self.sample.numbers[few], Units())
        plans = {
            name: tuned_plan(
                tuning.about(target), tuning.log, target is None, setup, self.log.decisions
            )
            for name, target in targets.items()
        }
        parts, total = [*pieces(len(self.log), BATCH_ROWS)], None
        batches = self._by_threads if self._scheduler is None else self._on_cluster
        for done, sums in enumerate(batches(parts, targets, plans, setup)):
            if self._progress is not None:
                self._progress("part", done, len(parts))
            total = sums if total is None else total + sums
        assert total is not None
        return total

    def _part(self, rows: slice) -> Part:
        """Return what ``_prepared`` needs of some rows."""
        number = np.arange(rows.start, rows.stop)
        return self.log.rows(rows), number, self._key(number)

    def _sums(self, part: Part, *plan: Any) -> BatchSums:
        """Return the sums of a part of the log, with the models that were fitted to the sample."""
        return Batch(self, *self._prepared(*part)).sums(*plan)

    def _by_threads(self, parts: Sequence[slice], *plan: Any) -> Iterator[BatchSums]:
        """Yield the sums of all parts; numpy lets other threads run while it computes."""

        def sums(rows: slice) -> BatchSums:
            found = self._sums(self._part(rows), *plan)
            self.log.release()
            return found

        with ThreadPoolExecutor(available_cores()) as pool:
            yield from pool.map(sums, parts)

    def _on_cluster(self, parts: Sequence[slice], *plan: Any) -> Iterator[BatchSums]:
        """Yield the same from the workers of a Dask cluster, which get the models and a part."""
        assert self._scheduler is not None
        worker = copy(self)
        del worker.log, worker.sample, worker._progress
        with dask_executor(self._scheduler) as pool:
            for first in range(0, len(parts), PARTS_SENT):
                several = [self._part(rows) for rows in parts[first : first + PARTS_SENT]]
                sent = [(replace(log, folder=None), *numbers) for log, *numbers in several]
                yield from pool.map(lambda part: worker._sums(part, *plan), sent)
                self.log.release()
