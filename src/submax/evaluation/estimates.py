"""Estimates of policies by several estimators, their differences, and the one to look at first."""

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from submax.core.arrays import Booleans, Floats, Integers
from submax.core.checks import positive
from submax.core.errors import InputError
from submax.core.summary import listed, number
from submax.evaluation.diagnostics import (
    Caution,
    Diagnostics,
    large_reward_cautions,
    policy_cautions,
    rare_reward_cautions,
    spread_cautions,
)
from submax.evaluation.estimators import OffPolicyEstimator, make_off_policy
from submax.evaluation.evidence import MOST_LISTED, LoggedEvidence, PolicyEvidence, group_index
from submax.evaluation.intervals import (
    INTERVALS,
    ConfidenceInterval,
    Terms,
    clustered,
    normal_quantile,
    standard_error_of_mean,
)
from submax.evaluation.log import By, Log
from submax.schema.context import Category
from submax.schema.schema import Schema

LOGGING_POLICY = "logging policy"
"""The name, in every comparison, of the policy that wrote the log."""
DECISION, SLATE = "decision", "slate"
"""What rewards are counted per. A slate is a ranked list; its reward is the sum over positions."""


MOST_NAMED = 10
"""Policies that a sentence names, and that a table or page shows before the rest is folded."""


def some_names(names: Sequence[str]) -> str:
    """Return the first names, and how many there are beside them."""
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


class Estimate(NamedTuple):
    """The reward that a policy would have earned per decision (or slate), by one estimator.

    ``threshold`` is the one that the estimator used, if it has one. ``cautions`` are sentences
    about reasons not to trust the ``value`` or its ``interval``. One estimate of each policy is
    ``recommended``. The ``joint`` intervals of all recommended estimates hold together: only they
    can say which of several policies is best. None if there is one policy alone.
    """

    policy: str
    estimator: str
    value: float
    interval: ConfidenceInterval
    threshold: float | None
    diagnostics: Diagnostics
    cautions: tuple[str, ...]
    recommended: bool = False
    joint: ConfidenceInterval | None = None

    def rows_needed(self, half_width: float) -> float:
        """Return how many rows a log like this one needs for an interval of this half-width.

        n' = n (h / h')², where h is half of the width of this interval with n rows. If rewards are
        rare, this is an upper bound, because the interval allows for what was not observed.
        """
        positive("the half-width", half_width)
        half = (self.interval.high - self.interval.low) / 2
        return self.diagnostics.rows * (half / half_width) ** 2

    def row(self) -> dict[str, Any]:
        """Return all numbers as a row of a table."""
        return {
            "policy": self.policy,
            "estimator": self.estimator,
            "recommended": self.recommended,
            "value": self.value,
            "low": self.interval.low,
            "high": self.interval.high,
            "threshold": self.threshold,
            **self.diagnostics._asdict(),
            "warnings": " | ".join(self.cautions),
        }


EDGES = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
"""Ends of the intervals of weights, each twice the one before. Weights average 1; the last interval
has no end."""


class Overlap(NamedTuple):
    """``rows`` and the sum of weights, ``weight``, in each interval of weights.

    The first interval is the weight 0; the next one is from above 0 to ``EDGES[1]``, and so on; the
    last one is above ``EDGES[-1]``. A policy that resembles the log has weights near 1. If few rows
    have most of the sum, the estimates rely on these rows.
    """

    rows: list[int]
    weight: list[float]

    @classmethod
    def of(cls, weight: Floats, count: Floats | None = None) -> "Overlap":
        """Return the distribution of the weights of all rows, each of ``count`` decisions.

        >>> Overlap.of(np.array([0.0, 1.0, 1.0, 100.0])).rows
        [1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 1]
        """
        place = np.searchsorted(EDGES, weight, side="left")
        places = len(EDGES) + 1
        rows = np.bincount(place, count, minlength=places).astype(np.int64)
        counted = weight if count is None else count * weight
        return cls(rows.tolist(), np.bincount(place, counted, minlength=places).tolist())

    def joined(self, other: "Overlap") -> "Overlap":
        """Return the distribution over the rows of both."""
        rows = [one + more for one, more in zip(self.rows, other.rows, strict=True)]
        weight = [one + more for one, more in zip(self.weight, other.weight, strict=True)]
        return Overlap(rows, weight)

    @staticmethod
    def labels() -> list[str]:
        """Return the names of the intervals."""
        between = [f"{low:g} to {high:g}" for low, high in pairwise(EDGES)]
        return ["0", *between, f"above {EDGES[-1]:g}"]


MOST_SLICES = 12
"""Values of a category that are slices of their own, the most frequent ones. The rows of the
others are one slice together."""
QUANTILES = (0.25, 0.5, 0.75)
"""A number is cut at its quartiles."""


class Slice(NamedTuple):
    """The rows, ``mask [n]``, in which the context field ``column`` has a ``value``."""

    column: str
    value: str
    mask: Booleans


class SliceEstimate(NamedTuple):
    """The recommended estimate of a policy for the rows of a slice."""

    column: str
    value: str
    estimate: Estimate


def check_slices(columns: Sequence[str], log: Log) -> None:
    """Refuse a column that is not a field of the context."""
    if isinstance(columns, str):
        raise InputError(
            f"slices is {columns!r}, and must be a list of columns: put it into a list, [...]",
            parameter="slices",
        )
    known = log.schema.context.names
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
            found += _by_category(column, field.values, values.astype(np.int64))
        else:
            found += _by_quartile(column, values)
    return [one for one in found if one.mask.any()]


def _by_category(column: str, names: Sequence[str], code: NDArray[Any]) -> list[Slice]:
    counts = np.bincount(code, minlength=len(names))
    order = np.argsort(-counts, kind="stable")
    slices = [Slice(column, names[one], code == one) for one in order[:MOST_SLICES]]
    rest = order[MOST_SLICES:]
    if rest.size:
        slices.append(Slice(column, f"{rest.size} other values", np.isin(code, rest)))
    return slices


def _by_quartile(column: str, values: NDArray[Any]) -> list[Slice]:
    edges = np.unique(np.quantile(values, QUANTILES).astype(values.dtype))
    bin_of = np.searchsorted(edges, values, side="left")
    words = [f"up to {number(edges[0])}"]
    words += [f"above {number(low)}, up to {number(high)}" for low, high in pairwise(edges)]
    words.append(f"above {number(edges[-1])}")
    return [Slice(column, word, bin_of == place) for place, word in enumerate(words)]


class EstimatedPolicy(NamedTuple):
    """The estimates of one policy by all estimators, and their terms in the same order.

    ``cluster [n]`` is the number of each row's cluster, if the log has clusters. ``overlap`` is the
    distribution of the weights, and ``slices`` are recommended estimates of parts of the rows.
    ``bounds`` are those of a reward, if they are known.
    """

    estimates: list[Estimate]
    terms: list[Terms]
    cluster: Integers | None = None
    overlap: Overlap | None = None
    slices: Sequence[SliceEstimate] = ()
    bounds: tuple[float, float] | None = None


SESSIONS = "per-decision"
"""The estimator for logs with sessions. All others, except `trajectory`, have a warning there: they
assume that a decision does not change what comes later in its session. So this one is recommended,
unless its weights, which are products over a session, are spread so widely that it has more
warnings than the others."""
ORDER = (
    "dr",
    "dr-shrinkage",
    "snips",
    "switch-dr",
    SESSIONS,
    "pseudo-inverse",
    "clipped",
    "ips",
    "replay",
    "mips",
)
"""Estimators in the order of preference. ``dr`` is first because it needs only the propensities or
the model of rewards to be right, and both reduce its error. Estimators with parameters of their
own come after those by name."""
RANKING_ORDER = ("cascade-dr", "rips", "sips", "pbm", "iips")
"""The same for estimators of rankings."""
MODEL_ONLY = "dm"
"""The estimator that is recommended only if there is no other, because nothing corrects the error
of its model."""


def rule_of(estimators: Sequence[str]) -> str:
    """Return the rule as a reader is told it, about the estimators that were used."""
    preferred = [name for name in (*ORDER, *RANKING_ORDER) if name in estimators]
    rule = "the recommended estimate of a policy is the one with the fewest warnings"
    if len(preferred) > 1:
        rule += f"; among equals the first of {', '.join(preferred)}"
    if SESSIONS in estimators:
        rule += (
            f"; with sessions this is {SESSIONS}, unless its weights are spread too widely, "
            "because others assume that decisions do not change what comes later"
        )
    return f"{rule}; {MODEL_ONLY} only if there is no other" if MODEL_ONLY in estimators else rule


def recommended(estimates: Sequence[Estimate]) -> Estimate:
    """Return the estimate, among those of one policy, that the rule recommends.

    An estimate without a value is recommended only if there is no other.
    """
    return min(estimates, key=_rank)


def _rank(one: Estimate) -> tuple[bool, bool, int, int, str]:
    kind = one.estimator
    place = ORDER.index(kind) if kind in ORDER else len(ORDER)
    return one.value != one.value, kind == MODEL_ONLY, len(one.cautions), place, kind


USUAL = ("ips", "snips", "clipped", "dm", "dr", "switch-dr", "dr-shrinkage")
"""Estimators that apply to every log; they are used if the caller names none."""
SAME_PROPENSITY = 1e-9
"""If propensities differ by less than this, the log is uniform and replay applies."""


def has_slots(schema: Schema) -> bool:
    """Return whether actions have several slots and no real-valued parts."""
    return len(schema.menu.slots) > 1 and not schema.menu.ranges


def chosen_estimators(
    given: Sequence[str | Mapping[str, Any]], schema: Schema, has_sessions: bool = False
) -> dict[str, OffPolicyEstimator]:
    """Return the estimators that the caller named, by label.

    The label is the short name; if several are of one kind, it contains their parameters.
    """
    if isinstance(given, (str, Mapping)):
        raise InputError(
            f"estimators is {given!r}, and must be a list of estimators: put it into a list, [...]",
            parameter="estimators",
        )
    made = [make_off_policy(one) for one in given]
    kinds = [one.short for one in made]
    labelled: dict[str, OffPolicyEstimator] = {}
    for one in made:
        if one.uses_slots and not has_slots(schema):
            raise InputError(
                f"the estimator {one.short} needs a log of several slots without real-valued "
                "parts, and this log has none: leave the estimator out",
                parameter="estimators",
            )
        if one.uses_groups and group_index(schema) is None:
            raise InputError(
                f"the estimator {one.short} needs actions of which some have the same features, "
                "and this log has none: give action_features, or leave the estimator out",
                parameter="estimators",
            )
        if one.uses_sessions and not has_sessions:
            raise InputError(
                f"the estimator {one.short} needs a log with sessions, and this log has none: name "
                "the column, --column session=NAME, or leave the estimator out",
                parameter="estimators",
            )
        label = one.short if kinds.count(one.short) == 1 else repr(one)
        if label in labelled:
            raise InputError(
                f"the estimator {label} is asked for twice: leave one of the two out",
                parameter="estimators",
            )
        labelled[label] = one
    return labelled


def applicable_estimators(log: Log) -> dict[str, OffPolicyEstimator]:
    """Return all estimators that apply to the log."""
    more = ["pseudo-inverse"] if has_slots(log.schema) else []
    if group_index(log.schema) is not None and len(log.schema.menu.slots[0].choices) <= MOST_LISTED:
        more.append("mips")
    more += ["per-decision", "trajectory"] if log.session is not None else []
    if np.ptp(log.propensity) < SAME_PROPENSITY:
        more.append("replay")
    return {name: make_off_policy(name) for name in (*USUAL, *more)}


class ComparisonOptions(NamedTuple):
    """The arguments of ``compare`` after they were checked, but for the log and the policies.

    ``estimators`` are those that the caller chose; if there are none, all that apply are used.
    """

    estimators: dict[str, OffPolicyEstimator]
    interval: str
    level: float
    share: float
    by: By
    seed: int
    apart: bool
    reward_model: Any
    slices: Sequence[str]

    def settings(
        self, policies: Iterable[str], estimators: Iterable[str], reward_model: str, baseline: str
    ) -> dict[str, Any]:
        """Return what a report says about the comparison, by name."""
        return {
            "policies": ", ".join(policies),
            "estimators": ", ".join(estimators),
            "reward model": reward_model,
            "interval": self.interval,
            "level": self.level,
            "share": self.share,
            "by": self.by,
            "seed": self.seed,
            "baseline": baseline,
        }


class Difference(NamedTuple):
    """How much more a policy would have earned per decision than a ``baseline``.

    Both are estimated from the same rows, so that the interval is that of the paired difference. It
    is shorter than the intervals of the two values suggest if both policies often agree.
    ``error`` is the standard error, ``rows`` the number of rows and ``level`` that of the interval.
    """

    policy: str
    baseline: str
    estimator: str
    value: float
    interval: ConfidenceInterval
    error: float
    rows: int
    level: float
    recommended: bool

    @property
    def is_clear(self) -> bool:
        """Whether the interval does not contain 0."""
        return self.interval.low > 0 or self.interval.high < 0

    def rows_needed(self, effect: float | None = None, power: float = 0.8) -> float:
        """Return how many rows a log needs so that a difference is found with this probability.

        n' = n ((1 + z_power / z_level) h / d)², where h is the distance from the difference to the
        end of the interval that is closer to 0, with n rows, and d is the ``effect``, by default
        the difference that was estimated. So a difference whose sign is not clear always needs
        more than n rows. The number is as uncertain as the estimate if no effect is given.

        >>> interval = ConfidenceInterval(-0.01, 0.03)
        >>> one = Difference("p", "q", "dr", 0.01, interval, 0.01, 1000, 0.95, True)
        >>> round(one.rows_needed())
        8173
        """
        if not 0 < power < 1:
            raise InputError(
                f"the power is {power!r}; a number between 0 and 1 is allowed: give 0.8",
                parameter="power",
            )
        size = abs(self.value if effect is None else effect)
        if size == 0:
            return math.inf
        half = self.value - self.interval.low if self.value > 0 else self.interval.high - self.value
        times = 1 + normal_quantile(2 * power - 1) / normal_quantile(self.level)
        return self.rows * (times * half / size) ** 2

    def row(self) -> dict[str, Any]:
        """Return the numbers as a row of a table."""
        return {
            "policy": self.policy,
            "baseline": self.baseline,
            "estimator": self.estimator,
            "recommended": self.recommended,
            "difference": self.value,
            "low": self.interval.low,
            "high": self.interval.high,
            "standard_error": self.error,
            "rows": self.rows,
            "rows_needed": self.rows_needed(),
        }


def difference_of(first: Terms, second: Terms) -> Terms:
    """Return the terms whose mean is the difference of two estimates from the same rows."""
    reach = None
    if first.reach is not None and second.reach is not None:
        reach = (first.reach[0] - second.reach[1], first.reach[1] - second.reach[0])
    plain = None
    if first.without_threshold is not None or second.without_threshold is not None:
        plain = difference_of(first.without_threshold or first, second.without_threshold or second)
    terms = first.influence() - second.influence()
    return Terms(terms, None, reach, None, plain, first.counts)


def intervals_of(
    terms: Sequence[Terms],
    interval: str,
    level: float,
    seed: int,
    bounds: tuple[float, float] | None = None,
) -> list[tuple[float, ConfidenceInterval, float]]:
    """Return the value of each difference, its interval and its standard error.

    If the ``bounds`` of rewards are known, no difference is larger than the one between them.
    """
    most = np.inf if bounds is None else bounds[1] - bounds[0]
    ends = INTERVALS[interval](terms, level, np.random.default_rng(seed))
    return [
        (
            float(np.clip(one.value, -most, most)),
            ConfidenceInterval(*np.clip(of_one, -most, most).tolist()),
            standard_error_of_mean(one.numerator, one.counts),
        )
        for one, of_one in zip(terms, ends, strict=True)
    ]


class EstimatorSet(NamedTuple):
    """Off-policy estimators by label, and the kind and level of their confidence intervals.

    ``seed`` is that of the bootstrap. The intervals of ``together`` differences hold together at
    the level, because each has the level 1 − (1 − level) / together (Bonferroni); so do the joint
    intervals of the ``policies`` that are compared.
    """

    estimators: dict[str, OffPolicyEstimator]
    interval: str
    level: float
    seed: int
    together: int = 1
    policies: int = 1

    @property
    def level_of_differences(self) -> float:
        """The level of the interval of each difference."""
        if self.together == 1:
            return self.level
        return 1 - (1 - self.level) / self.together

    def logging_policy(
        self, logged: LoggedEvidence, slices: Sequence[Slice] = ()
    ) -> EstimatedPolicy:
        """Return the mean reward of the evaluated rows, as the value of the logging policy."""
        about_log = logged.about_logging_policy()
        terms = about_log.terms(make_off_policy("ips"))
        diagnostics = Diagnostics.of(about_log)
        cautions = [
            *rare_reward_cautions(diagnostics),
            *large_reward_cautions(about_log.evidence.reward, about_log.evidence.counts),
        ]
        (found,) = self.bounded([terms], about_log.evidence.bounds, about_log.cluster)
        sentences = tuple(one.sentence for one in cautions)
        mean = Estimate(
            LOGGING_POLICY, "mean", *found[:2], None, diagnostics, sentences, recommended=True
        )
        parts = self._slices(mean, make_off_policy("ips"), about_log, slices)
        return EstimatedPolicy(
            [mean], [terms], about_log.cluster, slices=parts, bounds=about_log.evidence.bounds
        )

    def estimates(
        self,
        name: str,
        about_policy: PolicyEvidence,
        logged: LoggedEvidence,
        log_cautions: Sequence[Caution],
        same_rows: bool,
        slices: Sequence[Slice] = (),
    ) -> EstimatedPolicy:
        """Return the value of one policy by each estimator; one of them is recommended.

        ``log_cautions`` concern the log and so all policies. ``same_rows`` says that the policy
        was learned from the rows on which it is evaluated.
        """
        diagnostics = Diagnostics.of(about_policy)
        cautions = [*policy_cautions(about_policy, diagnostics, logged, same_rows), *log_cautions]
        terms = [about_policy.terms(estimator) for estimator in self.estimators.values()]
        bounded = self.bounded(terms, about_policy.evidence.bounds, about_policy.cluster)
        found = [
            Estimate(
                name,
                label,
                value,
                interval,
                one.threshold,
                diagnostics,
                (*(each.sentence for each in cautions if each.concerns(estimator)), *beyond),
            )
            for (label, estimator), one, (value, interval, beyond) in zip(
                self.estimators.items(), terms, bounded, strict=True
            )
        ]
        best = recommended(found)
        of_best, evidence = terms[found.index(best)], about_policy.evidence
        joint = self.joint(of_best, evidence.bounds, about_policy.cluster)
        chosen = best._replace(recommended=True, joint=joint)
        marked = [chosen if one is best else one for one in found]
        parts = self._slices(best, self.estimators[best.estimator], about_policy, slices)
        overlap = Overlap.of(evidence.weight, evidence.counts)
        return EstimatedPolicy(marked, terms, about_policy.cluster, overlap, parts, evidence.bounds)

    def _slices(
        self,
        whole: Estimate,
        estimator: OffPolicyEstimator,
        about_policy: PolicyEvidence,
        slices: Sequence[Slice],
    ) -> list[SliceEstimate]:
        """Return the estimates for the rows of each slice, by the estimator of the ``whole``."""
        found = []
        for one in slices:
            rows = about_policy.rows(one.mask)
            terms = rows.terms(estimator)
            ((value, interval, beyond),) = self.bounded([terms], rows.evidence.bounds, rows.cluster)
            diagnostics = Diagnostics.of(rows)
            cautions = [*rare_reward_cautions(diagnostics), *spread_cautions(diagnostics)]
            sentences = (*(each.sentence for each in cautions), *beyond)
            estimate = whole._replace(
                value=value,
                interval=interval,
                threshold=terms.threshold,
                diagnostics=diagnostics,
                cautions=sentences,
                recommended=True,
            )
            found.append(SliceEstimate(one.column, one.value, estimate))
        return found

    def differences(self, policy: EstimatedPolicy, baseline: EstimatedPolicy) -> list[Difference]:
        """Return the difference of a policy from a baseline by each estimator.

        Both were evaluated on the same rows. The logging policy has one estimate, its mean, from
        which all estimates of a policy are subtracted.
        """
        one_mean = baseline.estimates[0].policy == LOGGING_POLICY
        others = baseline.terms * len(policy.terms) if one_mean else baseline.terms
        terms = [difference_of(*pair) for pair in zip(policy.terms, others, strict=True)]
        if policy.cluster is not None:
            terms = [clustered(one, policy.cluster) for one in terms]
        found = intervals_of(
            terms, self.interval, self.level_of_differences, self.seed, policy.bounds
        )
        name = baseline.estimates[0].policy
        return [
            Difference(
                estimate.policy,
                name,
                estimate.estimator,
                *numbers,
                round(one.decisions),
                self.level_of_differences,
                estimate.recommended,
            )
            for estimate, numbers, one in zip(policy.estimates, found, policy.terms, strict=True)
        ]

    def joint(
        self,
        terms: Terms,
        bounds: tuple[float, float] | None,
        cluster: Integers | None = None,
    ) -> ConfidenceInterval | None:
        """Return the interval that holds together with those of all other policies."""
        if self.policies == 1:
            return None
        each = self._replace(level=1 - (1 - self.level) / self.policies)
        ((_, interval, _),) = each.bounded([terms], bounds, cluster)
        return interval

    def bounded(
        self,
        terms: Sequence[Terms],
        bounds: tuple[float, float] | None,
        cluster: Integers | None = None,
    ) -> list[tuple[float, ConfidenceInterval, list[str]]]:
        """Return value and interval of each estimate, and a sentence if the value was cut off.

        Both are cut off at the ``bounds`` of rewards if these are known, because no policy can earn
        more or less. The value is always inside of its interval.
        """
        rng = np.random.default_rng(self.seed)
        units = terms if cluster is None else [clustered(one, cluster) for one in terms]
        intervals = INTERVALS[self.interval](units, self.level, rng)
        low, high = bounds or (-np.inf, np.inf)
        found = []
        for one, ends in zip(terms, intervals, strict=True):
            value = float(np.clip(one.value, low, high))
            # The percentiles of a bootstrap can lie on one side of the value.
            around = ends.joined(ConfidenceInterval(one.value, one.value))
            interval = ConfidenceInterval(*np.clip(around, low, high).tolist())
            sentence = (
                f"the estimate is {one.value:.4g} and was cut off at {value:g}, because "
                f"rewards are from {low:g} to {high:g}"
            )
            found.append((value, interval, [sentence] if abs(one.value - value) > 0 else []))
        return found
