"""What a comparison of policies says: estimates, differences, and which estimate is recommended."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from submax.core.checks import one_of, positive
from submax.core.summary import number
from submax.evaluation.diagnostics import ChoiceFacts, Diagnostics
from submax.evaluation.log import data_frame
from submax.statistics.intervals import ConfidenceInterval, normal_quantile

MOST_NAMED = 10
"""Policies that a sentence names, and that a table or page shows before the rest is folded."""
POWER = 0.8
"""Share of logs that show a difference, if they have the rows that are said to be needed."""
Result = TypeVar("Result", "Estimate", "Difference")


class Estimate(NamedTuple):
    """The reward that a policy would have earned per decision, by one estimator.

    ``threshold`` is the one that the estimator used, if it has one. ``cautions`` are sentences
    about reasons not to trust the ``value`` or its ``interval``. One estimate of each policy is
    ``recommended``. The ``joint`` intervals of all recommended estimates hold together: only they
    can say which of several policies is best. A policy is ``judged`` if the log has enough rows to
    rank it: the highest of many estimates often stands on a few rows, or on a few rewards.
    ``slice`` are the column and the value that the rows have, if they are a part of the log.
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
    slice: tuple[str, str] | None = None

    def __str__(self) -> str:
        return self.within(self.interval)

    def within(self, interval: ConfidenceInterval) -> str:
        """Return the value with an interval, in words."""
        return f"{number(self.value)} [{number(interval.low)}, {number(interval.high)}]"

    def row(self) -> dict[str, Any]:
        """Return all numbers as a row of a table."""
        row: dict[str, Any] = dict(zip(("slice", "is"), self.slice or (), strict=False))
        row |= {name: getattr(self, name) for name in ("policy", "estimator", "recommended")}
        row |= {"value": self.value, **self.interval._asdict(), "threshold": self.threshold}
        return {**row, **self.diagnostics._asdict(), "warnings": " | ".join(self.cautions)}


class Difference(NamedTuple):
    """How much more a policy would have earned per decision than a ``baseline``.

    Both are estimated from the same rows, so the interval is that of the paired difference. It
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

    def rows_needed(self, effect: float | None = None) -> float:
        """Return how many rows a log needs so that 8 of 10 such logs show a difference.

        n' = n ((1 + z_0.8 / z_level) h / d)², where h is the distance from the difference to the
        end of the interval that is closer to 0, with n rows, and d is the ``effect``, by default
        the difference that was estimated. So a difference whose sign is not clear always needs
        more than n rows. The number is as uncertain as the estimate if no effect is given.

        >>> interval = ConfidenceInterval(-0.01, 0.03)
        >>> one = Difference("p", "q", "dr", 0.01, interval, 0.01, 1000, 0.95, True)
        >>> round(one.rows_needed())
        8173
        """
        if effect is not None:
            positive("effect", effect)
        size = abs(self.value if effect is None else effect)
        if size == 0:
            return math.inf
        half = self.value - self.interval.low if self.value > 0 else self.interval.high - self.value
        times = 1 + normal_quantile(2 * POWER - 1) / normal_quantile(self.level)
        return self.rows * (times * half / size) ** 2

    def row(self) -> dict[str, Any]:
        """Return the numbers as a row of a table."""
        names = ("policy", "baseline", "estimator", "recommended", "rows")
        row = {name: getattr(self, name) for name in names}
        row |= {"difference": self.value, **self.interval._asdict()}
        return {**row, "standard_error": self.error, "rows_needed": self.rows_needed()}


TABLES = ("estimates", "differences", "slices", "actions")
"""The tables of a comparison."""


class Comparison(NamedTuple):
    """All estimates, policies in the order given, and ``notes``: sentences about the log.

    ``level`` is that of the confidence intervals, such as 0.95. ``differences`` are those of all
    policies from the baseline, and ``slices`` the recommended estimates of each policy for parts of
    the rows. All values are rewards per decision.

    The data checks are facts about the ``actions``, the lowest, the mean and the highest of the
    ``rewards`` (of this ``reward_kind``) and of the ``propensities``, and how many of these a model
    ``estimated``. Policies learned from ``learned_rows`` of the log. ``settings`` are the arguments
    of the comparison, and ``digest`` is a SHA-256 hash of the contexts, actions and rewards of all
    rows.
    """

    estimates: list[Estimate]
    notes: list[str]
    level: float
    differences: Sequence[Difference]
    slices: Sequence[Estimate]
    actions: Sequence[ChoiceFacts]
    reward_kind: str
    rewards: tuple[float, float, float]
    propensities: tuple[float, float, float]
    estimated: int
    learned_rows: int
    settings: Mapping[str, Any]
    digest: str

    def policies(self) -> list[str]:
        """Return the names of the policies, the logging policy first."""
        return list(dict.fromkeys(one.policy for one in self.estimates))

    def ranked(self) -> list[str]:
        """Return the names of the evaluated policies, the highest estimate first.

        Policies for which the log has too few rows (``Estimate.judged``) come after those that earn
        as much as the log.
        """
        logged, *others = self.recommended()

        def rank(one: Estimate) -> tuple[bool, bool, float]:
            return math.isnan(one.value), not (one.judged and one.value >= logged.value), -one.value

        return [one.policy for one in sorted(others, key=rank)]

    def judged(self) -> list[Estimate]:
        """Return the recommended estimates that the log can rank, the highest value first.

        If it has too few rows for every policy, these are all estimates with a value.
        """
        computed = [one for one in self.recommended()[1:] if not math.isnan(one.value)]
        known = [one for one in computed if one.judged] or computed
        return sorted(known, key=lambda one: -one.value)

    def estimators(self) -> list[str]:
        """Return the labels of the estimators, that of the logging policy first."""
        return list(dict.fromkeys(one.estimator for one in self.estimates))

    def rows(self, table: str = "estimates") -> list[dict[str, Any]]:
        """Return the rows of ``estimates``, ``differences``, ``slices`` or ``actions``."""
        one_of("table", table, TABLES)
        return [one.row() for one in getattr(self, table)]

    def to_pandas(self, table: str = "estimates") -> Any:
        """Return a data frame of ``estimates``, ``differences``, ``slices`` or ``actions``."""
        return data_frame(self.rows(table))

    @property
    def answer(self) -> str:
        """What the comparison says, in one or two sentences.

        The highest of several estimates is too high on average (the winner's curse). So with
        several policies all intervals are ``joint`` ones, which hold together whichever policy is
        chosen: a policy can be the best one if the upper end of its interval is above the lower
        ends of all. Where the best policy is compared with each other one, as with
        ``baseline="best"``, or one of two with the other, their paired differences decide.
        """
        logged, known = self.estimates[0], self.judged()
        others = sum(not math.isnan(one.value) for one in self.recommended()[1:]) - len(known)
        log_earned = f"The log earned {logged} per decision"
        if not known:
            return f"{log_earned}; no other value could be computed."
        best, ends = known[0], {one.policy: one.joint or one.interval for one in known}
        possible = self._possible(best.policy, ends)
        if len(known) == 1:
            first = f"{best.policy} would have earned"
        elif len(possible) == 1:
            first = f"{best.policy} is the best of {len(known)} policies: it would have earned"
        else:
            first = f"This log cannot tell which of the {len(known)} policies is best"
            if len(possible) <= min(MOST_NAMED, len(known) - 1):
                first = f"The best policy is one of {', '.join(possible)}"
            first += f"; {best.policy} has the highest estimate,"
        first += f" {best.within(ends[best.policy])}"
        if len(known) > 1:
            first += f" (intervals of all policies hold together at {100 * self.level:g} %)"
        if ends[best.policy].low > logged.interval.high:
            log_earned = f"That is more than the log earned, {logged}"
        if others:
            left_out = "1 more policy" if others == 1 else f"{others:,} more policies"
            log_earned += f". For {left_out} the log has too few rows"
        return f"{first}. {log_earned}.{' See the warnings.' if best.cautions else ''}"

    def _possible(self, best: str, ends: Mapping[str, ConfidenceInterval]) -> list[str]:
        """Return the policies, among those with these ``ends``, that can be the best one."""
        paired = [
            one
            for one in self.differences
            if one.recommended
            and {one.policy, one.baseline} <= ends.keys()
            and best in (one.policy, one.baseline)
        ]
        if len(paired) == len(ends) - 1 and all(
            (1 - one.level) * len(paired) <= (1 - self.level) * (1 + 1e-9) for one in paired
        ):
            # Paired differences from the best policy, which hold together, say more.
            worse = {one.policy for one in paired if one.interval.high < 0}
            worse |= {one.baseline for one in paired if one.interval.low > 0}
            return [name for name in ends if name not in worse - {best}]
        floor = max(one.low for one in ends.values())
        return [name for name, one in ends.items() if one.high >= floor]

    def report(self, path: Path | str, command: str | None = None) -> None:
        """Write an HTML page with all results, which a browser can open offline.

        ``command`` is the command line that makes the page again; by default the arguments of
        ``compare`` are shown.
        """
        from submax.evaluation.report import write_report

        write_report(Path(path), self, command)

    def difference(self, policy: str, estimator: str | None = None) -> Difference:
        """Return the difference of a policy from the baseline, by the recommended estimator.

        The baseline itself, and a policy evaluated on other rows, have none.
        """
        return _of_policy(self.differences, policy, estimator)

    def recommended(self) -> list[Estimate]:
        """Return the recommended estimate of each policy, the logging policy first."""
        return [one for one in self.estimates if one.recommended]

    def find(self, policy: str, estimator: str) -> Estimate:
        """Return the estimate of a policy by an estimator; an unknown name is refused."""
        return _of_policy(self.estimates, policy, estimator)

    def __repr__(self) -> str:
        from submax.evaluation.report import text_of

        return text_of(self)


def _of_policy(results: Sequence[Result], policy: str, estimator: str | None) -> Result:
    """Return the result for a policy, by the recommended estimator if it is None."""
    one_of("policy", policy, dict.fromkeys(one.policy for one in results))
    mine = {one.estimator: one for one in results if one.policy == policy}
    best = estimator or next(name for name, one in mine.items() if one.recommended)
    one_of(f"estimator of {policy!r}:", best, mine)
    return mine[best]


# What is recommended ------------------------------------------------------------------------------

SESSIONS = "per-decision"
"""The estimator for logs with sessions. All others, except `trajectory`, have a warning there: they
assume that a decision does not change what comes later in its session. So this one is recommended,
unless its weights, which are products over a session, are spread so widely that it has more
warnings than the others."""
ORDER = (
    *("dr", "dr-shrinkage", "snips", "switch-dr", SESSIONS),
    *("pseudo-inverse", "clipped", "ips", "replay"),
)
"""Estimators in the order of preference. ``dr`` is first because it needs only the propensities or
the model of rewards to be right, and both reduce its error. Estimators with parameters of their
own come after those by name."""
MODEL_ONLY = "dm"
"""The estimator that is recommended only if there is no other, because nothing corrects the error
of its model."""


def rule_of(estimators: Sequence[str]) -> str:
    """Return the rule as a reader is told it, about the estimators that were used."""
    preferred = [name for name in ORDER if name in estimators]
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

    def rank(one: Estimate) -> tuple[bool, bool, int, int, str]:
        kind = one.estimator
        place = ORDER.index(kind) if kind in ORDER else len(ORDER)
        return math.isnan(one.value), kind == MODEL_ONLY, len(one.cautions), place, kind

    return min(estimates, key=rank)
