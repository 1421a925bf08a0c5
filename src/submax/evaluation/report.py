"""A comparison for people: as text, and as one page of HTML that needs nothing else."""

import base64
import hashlib
import io
import math
from collections.abc import Iterable, Sequence
from importlib.resources import files
from itertools import chain, groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from submax._version import __version__
from submax.core.errors import InputError
from submax.core.optional import require_extra
from submax.core.serialization import atomic_write
from submax.core.summary import listed, number, percentage
from submax.evaluation.diagnostics import kind_of
from submax.evaluation.policies import LOGGING_POLICY
from submax.evaluation.results import MOST_NAMED, Comparison, Difference, Estimate, rule_of

# Warnings -----------------------------------------------------------------------------------------


class Warned(NamedTuple):
    """A warning of one kind: a ``sentence``, and the estimates that it ``concerns``, in words.

    ``similar`` are the sentences of the same kind about other estimates, with other numbers.
    ``serious`` says that a recommended estimate is among them.
    """

    sentence: str
    similar: Sequence["Warned"]
    concerns: str
    serious: bool


def warnings_of(estimates: Sequence[Estimate]) -> list[Warned]:
    """Return one warning of each kind, those of recommended estimates first."""
    by_sentence: dict[str, list[Estimate]] = {}
    for one in estimates:
        for sentence in one.cautions:
            by_sentence.setdefault(sentence, []).append(one)
    kinds: dict[str, list[Warned]] = {}
    for sentence, concerned in by_sentence.items():
        words = []
        for policy in dict.fromkeys(one.policy for one in concerned):
            mine = [one.estimator for one in concerned if one.policy == policy]
            every = [one.estimator for one in estimates if one.policy == policy]
            words.append(policy if len(mine) == len(every) else f"{policy} ({', '.join(mine)})")
        serious = any(one.recommended for one in concerned)
        warned = Warned(sentence, (), listed(words, MOST_NAMED), serious)
        kinds.setdefault(kind_of(sentence), []).append(warned)
    found = []
    for several in kinds.values():
        first, *similar = sorted(several, key=lambda one: not one.serious)
        found.append(first._replace(similar=similar))
    return sorted(found, key=lambda one: not one.serious)


def capital(sentence: str) -> str:
    """Return a sentence with a capital letter at its beginning."""
    return sentence[0].upper() + sentence[1:]


# Text ---------------------------------------------------------------------------------------------

WIDTH = 110
"""Characters of a line of a table."""


def text_of(
    found: Comparison, *, every: bool = False, effect: float | None = None, top: int = MOST_NAMED
) -> str:
    """Return the answer, the recommended estimate of each policy, differences, warnings and notes.

    The ``top`` policies with the highest estimates are shown; if ``every``, with all estimates. If
    ``effect`` is given, a sentence says how many rows would be needed to find such a difference.
    """
    names, logged = found.ranked()[:top], found.estimates[0]
    wanted = found.estimates if every else found.recommended()
    shown = [one for name in names for one in wanted if one.policy == name]
    warned = warnings_of([logged, *shown])
    lines = [
        found.answer,
        f"{LOGGING_POLICY}: {_cell(logged, warned)}, the mean reward of {logged.diagnostics.rows} "
        "rows",
        _table(found, shown, warned, every),
    ]
    left_out = len(found.policies()) - 1 - len(names)
    if left_out > 0:
        lines.append(f"{left_out} more policies: --top {left_out + len(names)} prints all")
    differences = {one.policy: one for one in found.differences if one.recommended}
    known = [differences[name] for name in names if name in differences]
    lines += map(_difference, known)
    if left_out > 0 and any(one.level <= found.level for one in differences.values()):
        lines.append(
            "Each difference is for one policy alone; --baseline best compares all together"
        )
    if effect is not None:
        lines += [
            f"{one.policy} minus {one.baseline}, by {one.estimator}: about "
            f"{_rows(one.rows_needed(effect))} evaluated rows would show a difference of "
            f"{effect:.4g} in 8 of 10 logs"
            for one in known
        ]
    for place, warning in enumerate(warned, 1):
        similar = listed([other.concerns for other in warning.similar], MOST_NAMED)
        concerned = f" ({warning.concerns}; similarly {similar})" if similar else ""
        lines.append(f"Warning {place}: {warning.sentence}{concerned}")
    lines += [f"Note: {note}" for note in found.notes]
    if len(found.estimators()) > 2:
        rule = rule_of(found.estimators()[1:])
        lines.append(f"* {rule}" if every else f"{capital(rule)} (--all prints the others)")
    return "\n".join(lines)


def _difference(one: Difference) -> str:
    """Return a sentence about a difference, and how many rows would make it clear."""
    ends = f"[{one.interval.low:+.4g}, {one.interval.high:+.4g}]"
    text = f"{one.policy} minus {one.baseline}, by {one.estimator}: {one.value:+.4g} {ends}"
    needed = one.rows_needed()
    if one.is_clear or not math.isfinite(needed):
        return text
    return (
        f"{text}; not significant: if the difference is as estimated, about {_rows(needed)} "
        "evaluated rows would show it in 8 of 10 logs"
    )


def _rows(needed: float) -> str:
    """Return a number of rows with two significant digits, such as 22,000."""
    return f"{float(f'{needed:.2g}'):,.0f}"


def _cell(one: Estimate, warned: Sequence[Warned], star: bool = False) -> str:
    """Return a value with its interval, and the numbers of the warnings about it."""
    kinds = [kind_of(each.sentence) for each in warned]
    marks = " ".join(str(kinds.index(kind_of(each)) + 1) for each in one.cautions)
    return f"{one}{'*' * (star and one.recommended)}{f' ! {marks}' if marks else ''}"


def _table(
    found: Comparison, estimates: Sequence[Estimate], warned: Sequence[Warned], star: bool
) -> str:
    """Return a table with a row for each of the estimates; recommended ones may have a ``star``."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=f"Expected reward per decision, {100 * found.level:g} % intervals")
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
    for policy, several in groupby(estimates, lambda one: one.policy):
        for place, one in enumerate(several):
            about, row = one.diagnostics, ["", one.estimator, _cell(one, warned, star)]
            if not place:
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
        """Return the scale on which all finite numbers of the estimates have a place."""
        numbers = np.array([(one.value, *one.interval) for one in estimates])
        known = numbers[np.isfinite(numbers)]
        low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
        margin = MARGIN * (high - low) or 0.5
        return cls(low - margin, high + margin)

    def place(self, number: float) -> float:
        """Return the place of a number, from 0 to 100; numbers beyond the ends are at the ends."""
        return round(float(np.interp(number, self, (0, 100))), 2)

    def mark(self, one: Estimate) -> dict[str, float | None]:
        """Return the places of a value, None if it is unknown, and of its interval."""
        (low, high), everywhere = one.interval, math.isnan(one.interval.low)
        return {
            "value": None if math.isnan(one.value) else self.place(one.value),
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


def write_report(path: Path, found: Comparison, command: str | None = None) -> None:
    """Write the page; ``command`` is the command line by which it is made again.

    Every name and text of the log is shown as text.
    """
    check_report(path)
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(TEMPLATES, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(number=number, percentage=percentage, folds=_folds, rows=_rows)
    style = files(TEMPLATES).joinpath("templates", "report.css").read_text(encoding="utf-8")
    policies = found.policies()[1:]
    page = environment.get_template("report.html").render(
        found=found,
        command=command,
        version=__version__,
        style=style,
        # The policy of the page allows this style sheet alone: no script, no image, no address.
        digest=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        logging=found.estimates[0],
        scale=AxisScale.of(found.estimates),
        groups=_folds(policies if len(policies) <= MOST_NAMED else found.ranked(), MOST_NAMED),
        most=MOST_NAMED,
        warnings=warnings_of(found.estimates),
        rule=f"{capital(rule_of(found.estimators()[1:]))}.",
        rows=found.estimates[0].diagnostics.rows,
        # Actions whose propensities are wrong come first, because the page folds the last ones.
        actions=sorted(found.actions, key=lambda one: (one.plausible, -one.rows)),
        slices=_slices(found),
    )
    with atomic_write(path) as file:
        file.write(page.encode())


def _folds(rows: Sequence[Any], most: int) -> list[Sequence[Any]]:
    """Return the rows that are shown, and those that are folded, if there are many."""
    return [rows] if len(rows) <= most else [rows[:most], rows[most:]]


def _slices(found: Comparison) -> list[dict[str, Any]]:
    """Return the estimates of slices by column, then by value, with the scale of each column."""
    columns: dict[str, dict[str, list[Estimate]]] = {}
    for one in found.slices:
        column, value = one.slice or ("", "")
        columns.setdefault(column, {}).setdefault(value, []).append(one)
    return [
        {"column": column, "rows": rows.items(), "scale": AxisScale.of(chain(*rows.values()))}
        for column, rows in columns.items()
    ]
