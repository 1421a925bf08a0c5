"""Writes the report of a comparison: one page of HTML that needs nothing else."""

import base64
import hashlib
import math
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from submax._version import __version__
from submax.core.errors import InputError
from submax.core.optional import require_extra
from submax.core.serialization import atomic_write
from submax.core.summary import number, percentage
from submax.evaluation.diagnostics import Overlap, kind_of
from submax.evaluation.estimates import (
    DECISION,
    MOST_NAMED,
    Estimate,
    rule_of,
)

if TYPE_CHECKING:
    from submax.evaluation.comparison import Comparison, Overview

MARGIN = 0.04
"""Empty share of the width at each end of a figure."""


class Mark(NamedTuple):
    """A value and its interval as places from 0 to 100; ``value`` is None if it is not known."""

    value: float | None
    low: float
    high: float


class AxisScale(NamedTuple):
    """The numbers at the left and at the right end of a figure."""

    first: float
    last: float

    @classmethod
    def of(cls, numbers: Iterable[float]) -> "AxisScale":
        """Return the scale on which all finite numbers have a place.

        >>> AxisScale.of([1.0, 2.0, float("inf")])
        AxisScale(first=0.96, last=2.04)
        """
        known = [one for one in numbers if math.isfinite(one)] or [0.0, 1.0]
        low, high = min(known), max(known)
        margin = MARGIN * (high - low) or 0.5
        return cls(low - margin, high + margin)

    def place(self, number: float) -> float:
        """Return the place of a number, from 0 to 100; numbers beyond the ends are at the ends."""
        if math.isnan(number):
            return 0.0
        share = (number - self.first) / (self.last - self.first)
        return round(100 * min(max(share, 0.0), 1.0), 2)

    def mark(self, value: float, low: float, high: float) -> Mark:
        """Return the places of a value and of its interval."""
        known = None if math.isnan(value) else self.place(value)
        ends = (-math.inf if math.isnan(low) else low, math.inf if math.isnan(high) else high)
        return Mark(known, self.place(ends[0]), self.place(ends[1]))


class Warned(NamedTuple):
    """A warning of one kind: a ``sentence``, and the estimates that it ``concerns``, in words.

    ``similar`` are the sentences of the same kind about other estimates, with other numbers.
    ``serious`` says that a recommended estimate is among them.
    """

    sentence: str
    similar: Sequence["Warned"]
    concerns: str
    serious: bool


def capital(sentence: str) -> str:
    """Return a sentence with a capital letter at its beginning."""
    return sentence[0].upper() + sentence[1:]


def warnings_of(estimates: Sequence[Estimate]) -> list[Warned]:
    """Return one warning of each kind, those of recommended estimates first."""
    by_sentence: dict[str, list[Estimate]] = {}
    for one in estimates:
        for sentence in one.cautions:
            by_sentence.setdefault(sentence, []).append(one)
    kinds: dict[str, list[Warned]] = {}
    for sentence, concerned in by_sentence.items():
        serious = any(one.recommended for one in concerned)
        one_warning = Warned(sentence, (), _words(concerned, estimates), serious)
        kinds.setdefault(kind_of(sentence), []).append(one_warning)
    found = []
    for several in kinds.values():
        first, *similar = sorted(several, key=lambda one: not one.serious)
        found.append(first._replace(similar=similar))
    return sorted(found, key=lambda one: not one.serious)


def _words(concerned: Sequence[Estimate], estimates: Sequence[Estimate]) -> str:
    """Return the policies, each with its estimators unless all of them are concerned."""
    words = []
    for policy in dict.fromkeys(one.policy for one in concerned):
        mine = [one.estimator for one in concerned if one.policy == policy]
        every = [one.estimator for one in estimates if one.policy == policy]
        words.append(policy if len(mine) == len(every) else f"{policy} ({', '.join(mine)})")
    more = len(words) - MOST_NAMED
    return ", ".join(words[:MOST_NAMED]) + (f" and {more} more policies" if more > 0 else "")


TEMPLATES = "submax.evaluation"
CALIBRATION_ERRORS = 2.0
"""Standard errors to each side of a ratio that are drawn: about 95 %."""


def check_report(path: Path) -> None:
    """Refuse a path to which no report can be written, before any work is done."""
    require_extra("report", "a report", "jinja2")
    if path.is_dir() or not path.resolve().parent.is_dir():
        raise InputError(
            f"the report is {str(path)!r}: give a file in an existing folder, such as report.html",
            parameter="path",
        )


def write_report(path: Path, found: "Comparison", command: str | None = None) -> None:
    """Write the page; ``command`` is the command line by which it is made again."""
    check_report(path)
    overview = found.overview
    if overview is None:
        raise InputError(
            "only a comparison that compare() returned has a report: compare the policies again"
        )
    page = rendered(found, overview, command).encode()
    with atomic_write(path) as file:
        file.write(page)


def rendered(found: "Comparison", overview: "Overview", command: str | None) -> str:
    """Return the page as HTML; every name and text of the log is shown as text."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(TEMPLATES, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(number=number, percentage=percentage, folds=_folds)
    style = files(TEMPLATES).joinpath("templates", "report.css").read_text(encoding="utf-8")
    # The policy of the page allows this style sheet alone: no script, no image, no address.
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return environment.get_template("report.html").render(
        found=found,
        by_decision=found.unit == DECISION,
        units=found.units,
        overview=overview,
        command=command,
        version=__version__,
        style=style,
        digest=digest,
        logging=found.estimates[0],
        scale=AxisScale.of(_numbers(found.estimates)),
        groups=_groups(found),
        most=MOST_NAMED,
        warnings=warnings_of(found.estimates),
        rule=f"{capital(rule_of(found.estimators()[1:]))}.",
        weights=Overlap.labels(),
        calibrated=_calibrated(overview),
        slices=_slices(overview),
    )


def _numbers(estimates: Sequence[Estimate]) -> list[float]:
    return [number for one in estimates for number in (one.value, *one.interval)]


def _folds(rows: Sequence[Any], most: int) -> list[Sequence[Any]]:
    """Return the rows that are shown, and those that are folded, if there are many."""
    return [rows] if len(rows) <= most else [rows[:most], rows[most:]]


def _groups(found: "Comparison") -> list[list[str]]:
    """Return the policies that are shown, and those that are folded, if there are many.

    The first ones are those with the highest recommended estimates.
    """
    policies = found.policies()[1:]
    if len(policies) > MOST_NAMED:
        policies = found.ranked()
    return [list(one) for one in _folds(policies, MOST_NAMED)]


def _calibrated(overview: "Overview") -> dict[str, Any]:
    """Return the choices whose propensities were checked, and the scale of their ratios."""
    choices = [one for one in overview.choices if one.calibration is not None]
    # Those that chance does not explain come first, because the page folds the last ones.
    choices.sort(key=lambda one: one.calibration is None or one.calibration.plausible)
    ends = [1.0]
    for one in choices:
        if one.calibration is not None:
            half = CALIBRATION_ERRORS * one.calibration.error
            ends += [one.calibration.ratio - half, one.calibration.ratio + half]
    return {"choices": choices, "scale": AxisScale.of(ends), "errors": CALIBRATION_ERRORS}


def _slices(overview: "Overview") -> list[dict[str, Any]]:
    """Return the estimates of slices by column, then by value, with the scale of each column."""
    found = []
    for column in dict.fromkeys(one.column for one in overview.slices):
        mine = [one for one in overview.slices if one.column == column]
        values = list(dict.fromkeys(one.value for one in mine))
        rows = [(value, [one.estimate for one in mine if one.value == value]) for value in values]
        scale = AxisScale.of(_numbers([one.estimate for one in mine]))
        found.append({"column": column, "rows": rows, "scale": scale})
    return found
