"""What a comparison says: as data, as text, and as one HTML page that needs nothing else."""

import base64
import hashlib
import io
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from itertools import chain, groupby
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from submax._version import __version__
from submax.core.checks import one_of, positive
from submax.core.errors import InputError
from submax.core.optional import require_extra
from submax.core.serialization import atomic_write
from submax.core.summary import listed, number, percentage
from submax.evaluation.diagnostics import ChoiceFacts, Diagnostics, kind_of
from submax.evaluation.log import data_frame
from submax.evaluation.policies import LOGGING_POLICY
from submax.statistics.intervals import ConfidenceInterval, normal_quantile

MOST_NAMED = 10
"""Policies that a sentence names, and that a table or page shows before the rest is folded."""
POWER = 0.8
"""Share of logs in which a difference is significant, if they have the rows that it needs."""
Result = TypeVar("Result", "Estimate", "Difference")


class Estimate(NamedTuple):
    """The reward that a policy would have earned per decision, by one estimator.

    ``threshold`` is the weight threshold of the estimator, if it has one. ``cautions`` are
    sentences that say why not to trust the ``value`` or its ``interval``. One estimate of each
    policy is ``recommended``. The ``joint`` intervals of all recommended estimates hold together,
    so only they can say which of several policies is best. A policy is ``judged`` if the log has
    enough rows to rank it: the highest of many estimates often comes from a few rows or a few
    rewards. ``slice`` is the column and its value if only such rows were evaluated.
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

    Both are estimated from the same rows, and the interval is that of the paired difference. If
    both policies often agree, it is shorter than the intervals of the two values suggest. ``error``
    is the standard error, ``rows`` the number of rows, and ``level`` the level of the interval.
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
        more than n rows. Without an effect the number is as uncertain as the estimate.

        >>> interval = ConfidenceInterval(-0.01, 0.03)
        >>> difference = Difference("p", "q", "dr", 0.01, interval, 0.01, 1000, 0.95, True)
        >>> round(difference.rows_needed())
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


# What is recommended ------------------------------------------------------------------------------

SESSIONS = "per-decision"
"""The estimator for logs with sessions. All others, except `trajectory`, have a warning there: they
assume that a decision does not change what comes later in its session. So this one is recommended,
unless its weights, which are products over a session, vary so widely that it has more warnings than
the others."""
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


def recommended(estimates: Sequence[Estimate]) -> Estimate:
    """Return the estimate, among those of one policy, that the rule recommends.

    An estimate without a value is recommended only if there is no other.
    """

    def rank(estimate: Estimate) -> tuple[bool, bool, int, int, str]:
        label = estimate.estimator
        place = ORDER.index(label) if label in ORDER else len(ORDER)
        without_value = math.isnan(estimate.value)
        return without_value, label == MODEL_ONLY, len(estimate.cautions), place, label

    return min(estimates, key=rank)


def rule_of(estimators: Sequence[str]) -> str:
    """Return the rule of ``recommended`` for the reader, about the estimators that were used."""
    preferred = [name for name in ORDER if name in estimators]
    rule = "The estimate with the fewest warnings is recommended"
    if len(preferred) > 1:
        rule += f"; among equals the first of {', '.join(preferred)}"
    if SESSIONS in estimators:
        rule += (
            f"; with sessions this is {SESSIONS}, unless its weights vary too much, "
            "because the others assume that decisions do not change what comes later"
        )
    return f"{rule}; {MODEL_ONLY} only if there is no other" if MODEL_ONLY in estimators else rule


# The data -----------------------------------------------------------------------------------------

TABLES = ("estimates", "differences", "slices", "actions")
"""The tables of a comparison."""


class Comparison(NamedTuple):
    """All estimates, policies in the order given, and ``notes``: sentences about the log.

    ``level`` is the level of the confidence intervals, such as 0.95. ``differences`` compare every
    policy with the baseline. ``slices`` are the recommended estimates of each policy for parts of
    the rows. All values are rewards per decision.

    The data checks are facts about the ``actions``, the lowest, mean and highest of the ``rewards``
    (of this ``reward_kind``) and of the ``propensities``, and how many propensities were
    ``estimated`` by a model. Policies learned from ``learned_rows`` of the log. ``settings`` are
    the arguments of the comparison, and ``digest`` is a SHA-256 hash of the contexts, actions and
    rewards of all rows.
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
        return list(dict.fromkeys(estimate.policy for estimate in self.estimates))

    def estimators(self) -> list[str]:
        """Return the labels of the estimators, beginning with that of the logging policy."""
        return list(dict.fromkeys(estimate.estimator for estimate in self.estimates))

    def recommended(self) -> list[Estimate]:
        """Return the recommended estimate of each policy, the logging policy first."""
        return [estimate for estimate in self.estimates if estimate.recommended]

    def find(self, policy: str, estimator: str) -> Estimate:
        """Return the estimate of a policy by an estimator; an unknown name is refused."""
        return _of_policy(self.estimates, policy, estimator)

    def difference(self, policy: str, estimator: str | None = None) -> Difference:
        """Return the difference of a policy from the baseline, by the recommended estimator.

        The baseline itself, and a policy evaluated on other rows, have none.
        """
        return _of_policy(self.differences, policy, estimator)

    def ranked(self) -> list[str]:
        """Return the names of the evaluated policies, the highest estimate first.

        Policies for which the log has too few rows (``Estimate.judged``) come after those that earn
        as much as the log.
        """
        logged, *others = self.recommended()

        def rank(one: Estimate) -> tuple[bool, bool, float]:
            return math.isnan(one.value), not (one.judged and one.value >= logged.value), -one.value

        return [estimate.policy for estimate in sorted(others, key=rank)]

    def judged(self) -> list[Estimate]:
        """Return the recommended estimates that the log can rank, the highest value first.

        If it has too few rows for every policy, these are all estimates with a value.
        """
        computed = [one for one in self.recommended()[1:] if not math.isnan(one.value)]
        known = [one for one in computed if one.judged] or computed
        return sorted(known, key=lambda one: -one.value)

    @property
    def answer(self) -> str:
        """What the comparison says, in one or two sentences.

        The highest of several estimates is too high on average (the winner's curse). So with
        several policies all intervals are ``joint`` ones, which hold together whichever policy is
        chosen: a policy can be the best one if the upper end of its interval is above the lower
        ends of all. Paired differences decide where the best policy is compared with each other
        policy: with ``baseline="best"``, or if there are two policies and one is the baseline.
        """
        logged, known = self.estimates[0], self.judged()
        others = sum(not math.isnan(one.value) for one in self.recommended()[1:]) - len(known)
        log_earned = f"The log earned {logged} per decision"
        if not known:
            return f"{log_earned}; no other value could be computed."
        best, intervals = known[0], {one.policy: one.joint or one.interval for one in known}
        possible = self._possible(best.policy, intervals)
        if len(known) == 1:
            first = f"{best.policy} would have earned"
        elif len(possible) == 1:
            first = f"{best.policy} is the best of {len(known)} policies: it would have earned"
        else:
            worse = len(known) - len(possible)
            first = f"This log cannot tell which of {len(possible)} policies is best"
            first += f" ({worse} more are clearly worse)" * (worse > 0)
            if len(possible) <= min(MOST_NAMED, len(known) - 1):
                first = f"The best policy is one of {', '.join(possible)}"
            first += f"; {best.policy} has the highest estimate,"
        first += f" {best.within(intervals[best.policy])}"
        if len(known) > 1:
            first += f" (intervals of all policies hold together at {100 * self.level:g} %)"
        paired = [
            one.interval.low > 0
            for one in self.differences
            if one.recommended
            and (one.policy, one.baseline) == (best.policy, LOGGING_POLICY)
            and _hold_together([one] * len(known), self.level)
        ]
        if any(paired) or intervals[best.policy].low > logged.interval.high:
            log_earned = f"That is more than the log earned, {logged}"
        if others:
            left_out = "1 more policy" if others == 1 else f"{others:,} more policies"
            log_earned += f". The log has too few rows to judge {left_out}"
        return f"{first}. {log_earned}.{' See the warnings.' if best.cautions else ''}"

    def _possible(self, best: str, intervals: Mapping[str, ConfidenceInterval]) -> list[str]:
        """Return the policies, among those with these ``intervals``, that can be the best one."""
        paired = [
            one
            for one in self.differences
            if one.recommended
            and {one.policy, one.baseline} <= intervals.keys()
            and best in (one.policy, one.baseline)
        ]
        if len(paired) == len(intervals) - 1 and _hold_together(paired, self.level):
            # Paired differences from the best policy, which hold together, say more.
            worse = {one.policy for one in paired if one.interval.high < 0}
            worse |= {one.baseline for one in paired if one.interval.low > 0}
            return [name for name in intervals if name not in worse - {best}]
        highest_low = max(interval.low for interval in intervals.values())
        return [name for name, interval in intervals.items() if interval.high >= highest_low]

    def rows(self, table: str = "estimates") -> list[dict[str, Any]]:
        """Return the rows of ``estimates``, ``differences``, ``slices`` or ``actions``."""
        one_of("table", table, TABLES)
        return [result.row() for result in getattr(self, table)]

    def to_pandas(self, table: str = "estimates") -> Any:
        """Return a data frame of ``estimates``, ``differences``, ``slices`` or ``actions``."""
        return data_frame(self.rows(table))

    def report(self, path: Path | str, command: str | None = None) -> None:
        """Write an HTML page with all results, which a browser can open offline.

        ``command`` is the command line that writes the same page again, if there is one. The page
        always shows the arguments of ``compare``.
        """
        write_report(Path(path), self, command)

    def __repr__(self) -> str:
        return text_of(self)


def _hold_together(differences: Sequence[Difference], level: float) -> bool:
    """Return whether the intervals of differences hold together at a level (Bonferroni)."""
    return sum(1 - one.level for one in differences) <= (1 - level) * (1 + 1e-9)


def _of_policy(results: Sequence[Result], policy: str, estimator: str | None) -> Result:
    """Return the result for a policy, by the recommended estimator if it is None."""
    one_of("policy", policy, dict.fromkeys(result.policy for result in results))
    by_estimator = {result.estimator: result for result in results if result.policy == policy}
    if estimator is None:
        return next(result for result in by_estimator.values() if result.recommended)
    one_of(f"estimator of {policy!r}:", estimator, by_estimator)
    return by_estimator[estimator]


# Warnings -----------------------------------------------------------------------------------------


class Warned(NamedTuple):
    """A warning: a ``sentence``, and the estimates that it ``concerns``, in words.

    ``serious`` says that a recommended estimate is among them. ``similar`` are the warnings of the
    same kind about other estimates, with other numbers.
    """

    sentence: str
    concerns: str
    serious: bool
    similar: Sequence["Warned"] = ()


def warnings_of(estimates: Sequence[Estimate]) -> list[Warned]:
    """Return one warning of each kind, those of recommended estimates first."""
    concerned = defaultdict[str, list[Estimate]](list)
    for estimate in estimates:
        for sentence in estimate.cautions:
            concerned[sentence].append(estimate)
    num_estimates = Counter(estimate.policy for estimate in estimates)
    kinds = defaultdict[str, list[Warned]](list)
    for sentence, several in concerned.items():
        words = []
        for policy, group in groupby(several, lambda estimate: estimate.policy):
            labels = [estimate.estimator for estimate in group]
            all_of_them = len(labels) == num_estimates[policy]
            words.append(policy if all_of_them else f"{policy} ({', '.join(labels)})")
        serious = any(estimate.recommended for estimate in several)
        kinds[kind_of(sentence)].append(Warned(sentence, listed(words, MOST_NAMED), serious))
    found = []
    for warnings in kinds.values():
        first, *similar = sorted(warnings, key=lambda warning: not warning.serious)
        found.append(first._replace(similar=similar))
    return sorted(found, key=lambda warning: not warning.serious)


# Text ---------------------------------------------------------------------------------------------

WIDTH = 110
"""Characters of a line of a table."""


def text_of(
    comparison: Comparison,
    *,
    every: bool = False,
    effect: float | None = None,
    top: int = MOST_NAMED,
) -> str:
    """Return the answer, the recommended estimate of each policy, differences, warnings and notes.

    The ``top`` policies with the highest estimates are shown; if ``every``, with all estimates. If
    ``effect`` is given, a sentence says how many rows would be needed to find such a difference.
    """
    names, logged = comparison.ranked()[:top], comparison.estimates[0]
    wanted = comparison.estimates if every else comparison.recommended()
    shown = [estimate for name in names for estimate in wanted if estimate.policy == name]
    warnings = warnings_of([logged, *shown])
    lines = [
        comparison.answer,
        f"{LOGGING_POLICY}: {_cell(logged, warnings)}, the mean reward of "
        f"{logged.diagnostics.rows} rows",
        _table(comparison.level, shown, warnings, every),
    ]
    left_out = len(comparison.policies()) - 1 - len(names)
    if left_out > 0:
        lines.append(f"{left_out} more policies: --top {left_out + len(names)} prints all")
    differences = {one.policy: one for one in comparison.differences if one.recommended}
    known = [differences[name] for name in names if name in differences]
    lines += map(_difference, known)
    if left_out > 0 and any(one.level <= comparison.level for one in differences.values()):
        lines.append("Each difference is for one policy alone; use --baseline best to compare all")
    if effect is not None:
        lines += [
            f"{one.policy} minus {one.baseline}, by {one.estimator}: about "
            f"{_rows(one.rows_needed(effect))} evaluated rows would show a difference of "
            f"{effect:.4g} in 8 of 10 logs"
            for one in known
        ]
    for place, warning in enumerate(warnings, 1):
        similar = listed([other.concerns for other in warning.similar], MOST_NAMED)
        concerned = f" ({warning.concerns}; similarly {similar})" if similar else ""
        lines.append(f"Warning {place}: {warning.sentence}{concerned}")
    lines += [f"Note: {note}" for note in comparison.notes]
    labels = comparison.estimators()[1:]
    if len(labels) > 1:
        lines.append(f"* {rule_of(labels)}" if every else f"{rule_of(labels)} (--all prints all)")
    return "\n".join(lines)


def _difference(difference: Difference) -> str:
    """Return a sentence about a difference, and how many rows would make it significant."""
    policy, baseline, estimator, value, interval, *_ = difference
    ends = f"[{interval.low:+.4g}, {interval.high:+.4g}]"
    text = f"{policy} minus {baseline}, by {estimator}: {value:+.4g} {ends}"
    needed = difference.rows_needed()
    if difference.is_clear or not math.isfinite(needed):
        return text
    return (
        f"{text}; not significant: about {_rows(needed)} evaluated rows would show a true "
        "difference of this size in 8 of 10 logs"
    )


def _rows(needed: float) -> str:
    """Return a number of rows with two significant digits, such as 22,000."""
    return f"{float(f'{needed:.2g}'):,.0f}"


def _cell(estimate: Estimate, warnings: Sequence[Warned], star: bool = False) -> str:
    """Return a value with its interval, and the numbers of the warnings about it."""
    kinds = [kind_of(warning.sentence) for warning in warnings]
    marks = " ".join(str(kinds.index(kind_of(caution)) + 1) for caution in estimate.cautions)
    return f"{estimate}{'*' * (star and estimate.recommended)}{f' ! {marks}' if marks else ''}"


def _table(
    level: float, estimates: Sequence[Estimate], warnings: Sequence[Warned], star: bool
) -> str:
    """Return a table with a row for each of the estimates; recommended ones may have a ``star``."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=f"Expected reward per decision, {100 * level:g} % intervals")
    # Headings in two lines leave room for names.
    headings = ["policy", "estimator", "value", "effective\nrows", "rewarded"]
    headings += ["largest\nweight", "without\nsupport"]
    for place, heading in enumerate(headings):
        table.add_column(
            Text(heading),
            justify="left" if place < 2 else "right",
            no_wrap=place in (1, 2),
            overflow="ellipsis" if place else "fold",
        )
    # All estimates of a policy have the same name and weights.
    for policy, several in groupby(estimates, lambda estimate: estimate.policy):
        for place, estimate in enumerate(several):
            row = ["", estimate.estimator, _cell(estimate, warnings, star)]
            if not place:
                about = estimate.diagnostics
                row[0] = policy
                row += [f"{about.effective:.0f}", f"{about.effective_rewards:.1f}"]
                row += [f"{about.largest:.3g}", f"{about.unsupported:.1%}"]
            table.add_row(*map(Text, row))
        if star:
            table.add_section()
    file = io.StringIO()
    Console(file=file, width=WIDTH).print(table)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


# The page -----------------------------------------------------------------------------------------

TEMPLATES = "submax.evaluation"
MARGIN = 0.04
"""Empty share of the width at each end of a figure."""


class AxisScale(NamedTuple):
    """The numbers at the left and at the right end of a figure."""

    first: float
    last: float

    @classmethod
    def of(cls, estimates: Iterable[Estimate]) -> "AxisScale":
        """Return a scale that contains all finite numbers of the estimates."""
        numbers = np.array([(estimate.value, *estimate.interval) for estimate in estimates])
        known = numbers[np.isfinite(numbers)]
        low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
        margin = MARGIN * (high - low) or 0.5
        return cls(low - margin, high + margin)

    def place(self, number: float) -> float:
        """Return the place of a number, from 0 to 100; numbers beyond the ends are at the ends."""
        return round(float(np.interp(number, self, (0, 100))), 2)

    def mark(self, estimate: Estimate) -> dict[str, float | None]:
        """Return the places of a value, None if it is unknown, and of its interval."""
        (low, high), everywhere = estimate.interval, math.isnan(estimate.interval.low)
        return {
            "value": None if math.isnan(estimate.value) else self.place(estimate.value),
            "low": self.place(-math.inf if everywhere else low),
            "high": self.place(math.inf if everywhere else high),
        }


def check_report(path: Path) -> None:
    """Refuse a path to which no report can be written, before any work is done."""
    require_extra("report", "a report", "jinja2")
    if path.is_dir() or not path.resolve().parent.is_dir():
        raise InputError(
            f"the report is {str(path)!r}: give a file in an existing folder, such as report.html",
            parameter="path",
        )


def write_report(path: Path, comparison: Comparison, command: str | None) -> None:
    """Write the page. Names and texts of the log are escaped."""
    check_report(path)
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(TEMPLATES, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(number=number, percentage=percentage, rows=_rows)
    style = files(TEMPLATES).joinpath("templates", "report.css").read_text(encoding="utf-8")
    policies = comparison.policies()[1:]
    page = environment.get_template("report.html").render(
        comparison=comparison,
        command=command,
        version=__version__,
        style=style,
        # The content security policy allows this style sheet alone: no script, image or address.
        digest=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        logging=comparison.estimates[0],
        scale=AxisScale.of(comparison.estimates),
        groups=_folded(policies if len(policies) <= MOST_NAMED else comparison.ranked()),
        warnings=warnings_of(comparison.estimates),
        rule=rule_of(comparison.estimators()[1:]),
        rows=comparison.estimates[0].diagnostics.rows,
        # Actions whose propensities are wrong come first, because the page folds the last ones.
        action_groups=_folded(
            sorted(comparison.actions, key=lambda action: (action.plausible, -action.rows))
        ),
        slices=_slices(comparison.slices),
    )
    with atomic_write(path) as file:
        file.write(page.encode())


def _folded(rows: Sequence[Any]) -> list[Sequence[Any]]:
    """Return the rows that are shown, and those that are folded, if there are many."""
    shown, folded = rows[:MOST_NAMED], rows[MOST_NAMED:]
    return [shown, folded] if folded else [shown]


def _slices(estimates: Sequence[Estimate]) -> list[dict[str, Any]]:
    """Return the estimates of slices by column, then by value, with the scale of each column."""
    columns = defaultdict[str, dict[str, list[Estimate]]](dict)
    for estimate in estimates:
        column, value = estimate.slice or ("", "")
        columns[column].setdefault(value, []).append(estimate)
    return [
        {"column": column, "rows": rows.items(), "scale": AxisScale.of(chain(*rows.values()))}
        for column, rows in columns.items()
    ]
