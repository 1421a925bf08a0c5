"""Estimates of policies by several estimators, their differences, and the one to look at first."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from submax.core.checks import positive
from submax.core.errors import InputError
from submax.core.summary import number
from submax.evaluation.diagnostics import (
    FEWEST_REWARDS,
    FEWEST_TAKEN,
    Caution,
    Diagnostics,
    LogSums,
    PolicySums,
    large_reward_cautions,
    rare_reward_cautions,
    spread_cautions,
)
from submax.evaluation.estimators import OffPolicyEstimator, make_off_policy
from submax.evaluation.evaluator import LOGGING_POLICY, MEAN
from submax.evaluation.evidence import group_index
from submax.evaluation.intervals import (
    EQUAL_TERMS,
    INTERVALS,
    ConfidenceInterval,
    Summed,
    normal_quantile,
)
from submax.evaluation.log import By, Log
from submax.evaluation.reward_models import MOST_LISTED
from submax.schema.schema import Schema

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
    can say which of several policies is best. None if there is one policy alone. A policy is
    ``judged`` if the log has enough rows to rank it: the highest of many estimates often stands on
    a few rows, or on a few rewards.
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
    judged: bool = True

    def __str__(self) -> str:
        return self.within(self.interval)

    def within(self, interval: ConfidenceInterval) -> str:
        """Return the value with an interval, in words."""
        return f"{number(self.value)} [{number(interval.low)}, {number(interval.high)}]"

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


class SliceEstimate(NamedTuple):
    """The recommended estimate of a policy for the rows of a slice."""

    column: str
    value: str
    estimate: Estimate


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
            f"estimators is {given!r}: give a list of estimators",
            parameter="estimators",
        )
    made = [make_off_policy(one) for one in given]
    kinds = [one.short for one in made]
    labelled: dict[str, OffPolicyEstimator] = {}
    for one in made:
        applies = (
            (has_slots(schema) or not one.uses_slots)
            and (group_index(schema) is not None or not one.uses_groups)
            and (has_sessions or not one.uses_sessions)
        )
        one.required(np.zeros(0) if applies else None)
        label = one.short if kinds.count(one.short) == 1 else repr(one)
        if label in labelled:
            raise InputError(
                f"the estimator {label} is named twice: leave one out",
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
                f"the power is {power!r}: give a number between 0 and 1, such as 0.8",
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


Bounds = tuple[float, float] | None
"""The lowest and the highest possible reward, if they are known."""


def differences_of(
    found: Sequence[Summed], interval: str, level: float, seed: int, bounds: Bounds = None
) -> list[tuple[float, ConfidenceInterval, float]]:
    """Return the value of each difference, its interval and its standard error.

    If the ``bounds`` of rewards are known, no difference is larger than the one between them.
    """
    most = np.inf if bounds is None else bounds[1] - bounds[0]
    ends = INTERVALS[interval](found, level, np.random.default_rng(seed))
    return [
        (
            float(np.clip(one.value, -most, most)),
            ConfidenceInterval(*np.clip(of_one, -most, most).tolist()),
            one.error,
        )
        for one, of_one in zip(found, ends, strict=True)
    ]


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of ``compare`` after they were checked, but for the log and the policies.

    ``estimators`` are those that apply to the log, by label. ``bounds`` are those of a reward. The
    intervals of ``together`` differences hold together at the level, because each has the level
    1 − (1 − level) / together (Bonferroni); so do the joint intervals of the ``policies`` that are
    compared.
    """

    estimators: dict[str, OffPolicyEstimator]
    interval: str = "gamma"
    level: float = 0.95
    share: float = 0.5
    by: By = "time"
    seed: int = 0
    apart: bool = False
    reward_model: Any = None
    baseline: str = LOGGING_POLICY
    slices: Sequence[str] = ()
    bounds: Bounds = None
    together: int = 1
    policies: int = 1

    def settings(self, policies: Iterable[str], reward_model: str) -> dict[str, Any]:
        """Return what a report says about the comparison, by name."""
        names = ("interval", "level", "share", "by", "seed", "baseline")
        return {
            "policies": some_names([*policies]),
            "estimators": ", ".join(self.estimators),
            "reward model": reward_model,
            **{name: getattr(self, name) for name in names},
        }

    @property
    def level_of_differences(self) -> float:
        """The level of the interval of each difference."""
        return 1 - (1 - self.level) / self.together if self.together > 1 else self.level

    def logging_policy(self, sums: PolicySums, log: LogSums) -> Estimate:
        """Return the mean reward of the evaluated rows, as the value of the logging policy."""
        diagnostics = sums.diagnostics
        cautions = [*rare_reward_cautions(diagnostics), *large_reward_cautions(log)]
        ((value, ends, _),) = self.bounded([sums.estimates[MEAN].estimate()])
        sentences = tuple(one.sentence for one in cautions)
        return Estimate(
            LOGGING_POLICY, MEAN, value, ends, None, diagnostics, sentences, recommended=True
        )

    def estimates(
        self, name: str, sums: PolicySums, cautions: Sequence[Caution], logged: float
    ) -> list[Estimate]:
        """Return the value of one policy by each estimator; one of them is recommended.

        ``logged`` is the mean reward of the log.
        """
        diagnostics = sums.diagnostics
        summed = {label: one.estimate() for label, one in sums.estimates.items()}
        bounded = self.bounded(list(summed.values()))
        found = []
        for (label, one), (value, ends, beyond) in zip(summed.items(), bounded, strict=True):
            estimator = self.estimators[label]
            sentences = (*(each.sentence for each in cautions if each.concerns(estimator)), *beyond)
            found.append(Estimate(name, label, value, ends, one.threshold, diagnostics, sentences))
        best = recommended(found)
        joint = self._joint(summed[best.estimator])
        # Few rewards are enough for a policy that clearly earns less than the log.
        enough = diagnostics.effective_rewards >= FEWEST_REWARDS or diagnostics.usual >= logged
        judged = diagnostics.effective >= FEWEST_TAKEN and (enough or best.interval.high < logged)
        marked = best._replace(recommended=True, joint=joint)
        return [(marked if one is best else one)._replace(judged=judged) for one in found]

    def slice_estimates(self, whole: Estimate, sums: PolicySums) -> list[SliceEstimate]:
        """Return the estimates for the rows of each slice, by the estimator of the ``whole``."""
        found = []
        for cut, some in sums.slices.items():
            summed, diagnostics = some.estimates[whole.estimator].estimate(), some.diagnostics
            ((value, interval, beyond),) = self.bounded([summed])
            cautions = [*rare_reward_cautions(diagnostics), *spread_cautions(diagnostics)]
            estimate = whole._replace(
                value=value,
                interval=interval,
                threshold=summed.threshold,
                diagnostics=diagnostics,
                cautions=(*(each.sentence for each in cautions), *beyond),
                recommended=True,
                joint=None,
            )
            found.append(SliceEstimate(cut.column, cut.value, estimate))
        return found

    def differences(self, estimates: Sequence[Estimate], sums: PolicySums) -> list[Difference]:
        """Return the difference of a policy from the baseline by each estimator.

        Both were evaluated on the same rows. The logging policy has one estimate, its mean, from
        which all estimates of a policy are subtracted.
        """
        level, rows = self.level_of_differences, round(sums.moments.decisions)
        summed = [one.difference() for one in sums.estimates.values()]
        found = differences_of(summed, self.interval, level, self.seed, self.bounds)
        return [
            Difference(
                one.policy, self.baseline, one.estimator, *numbers, rows, level, one.recommended
            )
            for one, numbers in zip(estimates, found, strict=True)
        ]

    def _joint(self, summed: Summed) -> ConfidenceInterval | None:
        """Return the interval that holds together with those of all other policies."""
        if self.policies == 1:
            return None
        each = msgspec.structs.replace(self, level=1 - (1 - self.level) / self.policies)
        ((_, interval, _),) = each.bounded([summed])
        return interval

    def bounded(
        self, estimates: Sequence[Summed]
    ) -> list[tuple[float, ConfidenceInterval, list[str]]]:
        """Return value and interval of each estimate, and a sentence if the value was cut off.

        Both are cut off at the bounds of rewards if these are known, because no policy can earn
        more or less. The value is always inside of its interval.
        """
        rng = np.random.default_rng(self.seed)
        intervals = INTERVALS[self.interval](estimates, self.level, rng)
        low, high = self.bounds or (-np.inf, np.inf)
        rounding, found = EQUAL_TERMS * (high - low), []
        for one, ends in zip(estimates, intervals, strict=True):
            value = float(np.clip(one.value, low, high))
            # The percentiles of a bootstrap can lie on one side of the value.
            around = ends.joined(ConfidenceInterval(one.value, one.value))
            interval = ConfidenceInterval(*np.clip(around, low, high).tolist())
            sentence = (
                f"the estimate is {one.value:.4g} and was cut off at {value:g}, because "
                f"rewards are from {low:g} to {high:g}"
            )
            found.append((value, interval, [sentence] if abs(one.value - value) > rounding else []))
        return found
