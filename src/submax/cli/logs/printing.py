"""Prints, writes and draws the results of the commands on logs."""

import math
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from submax.core.checks import one_of
from submax.evaluation.comparison import Comparison
from submax.evaluation.diagnostics import kind_of
from submax.evaluation.estimates import (
    DECISION,
    MOST_NAMED,
    Difference,
    Estimate,
    rule_of,
    some_names,
)
from submax.evaluation.evaluator import LOGGING_POLICY
from submax.evaluation.forest import ESTIMATES, draw_forest
from submax.simulation.results import MANIFEST, read_csv, write_csv

if TYPE_CHECKING:
    from submax.evaluation.learning import BestPolicy

POLICIES_PER_TABLE = 3
"""Policies side by side in one table: three columns of intervals fit into ``WIDTH``."""
DIFFERENCES = "differences.csv"
"""The file of the differences between policies."""
SLICES = "slices.csv"
"""The file of the estimates of slices."""
NAME_WIDTH = 30
"""Characters of the name of a policy that are not broken into two lines."""
WIDTH = 110
"""Characters of a line if the terminal is narrower or its width is not known."""


class PrintOptions(NamedTuple):
    """What to print beside the recommended estimates.

    The ``top`` policies with the highest estimates are printed. If ``every``, all their estimates
    are. If ``half_width`` or ``effect`` is given, a sentence says how many rows would be needed for
    an interval of this half-width, or to find a difference as large as this effect.
    """

    every: bool = False
    half_width: float | None = None
    effect: float | None = None
    top: int = MOST_NAMED


RECOMMENDED_ONLY = PrintOptions()
"""Print only the recommended estimates."""


def print_comparison(comparison: Comparison, options: PrintOptions = RECOMMENDED_ONLY) -> None:
    """Print the recommended estimate of each policy, or all, with warnings and notes below."""
    every = options.every
    console = Console()
    wide = Console(width=max(console.width, WIDTH))
    logged = comparison.estimates[0]
    sentences = Warnings({})
    names = top_policies(comparison, options.top)
    left_out = len(comparison.policies()) - 1 - len(names)
    marks = sentences.marks(logged)
    wide.print(comparison.answer, markup=False, soft_wrap=True)
    wide.print(
        f"{LOGGING_POLICY}: {_number(logged.value)} {escape(_interval(logged))}{marks}, the mean "
        f"reward of {logged.diagnostics.rows} {comparison.units}"
    )
    if every:
        for first in range(0, len(names), POLICIES_PER_TABLE):
            wide.print(_table(comparison, names[first : first + POLICIES_PER_TABLE], sentences))
    else:
        wide.print(_recommended_table(comparison, names, sentences))
    if left_out > 0:
        wide.print(f"{left_out} more policies: --top {left_out + len(names)} prints all")
    shown = [one for one in comparison.differences if one.recommended and one.policy in names]
    for one in sorted(shown, key=lambda one: names.index(one.policy)):
        wide.print(_difference_line(one, comparison.units), markup=False, soft_wrap=True)
    if left_out > 0 and comparison.differences:
        wide.print("Each difference is for one policy alone; --baseline best compares all together")
    for sentence in _rows_needed(comparison, options):
        wide.print(sentence, markup=False, soft_wrap=True)
    for line in sentences.lines():
        wide.print(line, markup=False, soft_wrap=True)
    for note in comparison.notes:
        wide.print(f"Note: {note}", markup=False, soft_wrap=True)
    if len(comparison.estimators()) > 2:
        rule = rule_of(comparison.estimators()[1:])
        line = f"* {rule}" if every else f"{rule[0].upper()}{rule[1:]} (--all prints the others)"
        wide.print(line, markup=False, soft_wrap=True)


def _rows_needed(comparison: Comparison, options: PrintOptions) -> Iterator[str]:
    """Yield sentences about how many evaluated rows would be needed, if that is asked for."""
    for one in comparison.recommended() if options.half_width is not None else ():
        needed = one.rows_needed(options.half_width or 0.0)
        yield (
            f"{one.policy}, by {one.estimator}: about {_rows(needed)} evaluated {comparison.units} "
            f"give an interval of ±{options.half_width:g}"
        )
    for difference in comparison.differences if options.effect is not None else ():
        if difference.recommended:
            needed = difference.rows_needed(options.effect)
            yield (
                f"{difference.policy} minus {difference.baseline}, by {difference.estimator}: "
                f"about {_rows(needed)} evaluated {comparison.units} show a difference of "
                f"{options.effect:g} in 8 of 10 logs"
            )


def _difference_line(one: Difference, units: str) -> str:
    """Return a sentence about a difference, and how many rows would make it clear."""
    ends = f"[{one.interval.low:+.4g}, {one.interval.high:+.4g}]"
    text = f"{one.policy} minus {one.baseline}, by {one.estimator}: {one.value:+.4g} {ends}"
    needed = one.rows_needed()
    if one.is_clear or not math.isfinite(needed):
        return text
    return (
        f"{text}; not significant: if the difference is as estimated, about {_rows(needed)} "
        f"evaluated {units} would show it in 8 of 10 logs"
    )


def _recommended_table(
    comparison: Comparison, names: Sequence[str], sentences: "Warnings"
) -> Table:
    """Return a table with a row for each of the named policies, the best first."""
    table = Table(title=_title(comparison))
    table.add_column("policy", overflow="fold")
    table.add_column("estimator", no_wrap=True)
    # Headings in two lines leave room for names.
    headings = ["value", f"effective\n{comparison.units}", "rewarded", "largest\nweight"]
    headings += ["without\nsupport"] * (comparison.unit == DECISION)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=heading == "value")
    by_policy = {one.policy: one for one in comparison.recommended()}
    for one in (by_policy[name] for name in names):
        about = one.diagnostics
        table.add_row(
            escape(one.policy),
            one.estimator,
            _cell(one, sentences),
            f"{about.effective:.0f}",
            f"{about.effective_rewards:.1f}",
            f"{about.largest:.3g}",
            *[f"{about.unsupported:.1%}"] * (comparison.unit == DECISION),
        )
    return table


def _title(comparison: Comparison) -> str:
    return f"Expected reward per {comparison.unit}, {100 * comparison.level:g} % intervals"


def print_notes(notes: Sequence[str]) -> None:
    """Print each note on a line of its own."""
    for note in notes:
        click.echo(f"Note: {note}")


def write_estimates(directory: Path, comparison: Comparison) -> None:
    """Write the estimates, the differences and the slices, each into one CSV file."""
    write_csv(directory / ESTIMATES, comparison.rows())
    if comparison.differences:
        write_csv(directory / DIFFERENCES, [one.row() for one in comparison.differences])
    if comparison.slice_rows():
        write_csv(directory / SLICES, comparison.slice_rows())


def _table(comparison: Comparison, names: Sequence[str], sentences: "Warnings") -> Table:
    table = Table(title=_title(comparison))
    table.add_column("estimator", no_wrap=True)
    for name in names:
        table.add_column(escape(name), justify="right")
    known = {(one.policy, one.estimator): one for one in comparison.estimates}
    for estimator in comparison.estimators()[1:]:
        estimates = [known.get((name, estimator)) for name in names]
        cells = [
            _cell(one, sentences, "*" if one is not None and one.recommended else "")
            for one in estimates
        ]
        table.add_row(estimator, *cells)
    table.add_section()
    firsts = [next(one for one in comparison.estimates if one.policy == name) for name in names]
    diagnostics = [one.diagnostics for one in firsts]
    effective = (f"{one.effective:.0f} of {one.rows}" for one in diagnostics)
    table.add_row(f"effective {comparison.units}", *effective)
    table.add_row("rewarded", *(f"{one.effective_rewards:.1f}" for one in diagnostics))
    table.add_row("largest weight", *(f"{one.largest:.3g}" for one in diagnostics))
    means = (f"{one.mean_weight:.3f} ± {one.mean_error:.2g}" for one in diagnostics)
    table.add_row("mean weight", *means)
    if comparison.unit == DECISION:
        table.add_row("without support", *(f"{one.unsupported:.1%}" for one in diagnostics))
    return table


def _cell(estimate: Estimate | None, sentences: "Warnings", star: str = "") -> str:
    if estimate is None:
        return "-"
    text = f"{_number(estimate.value)} {escape(_interval(estimate))}{star}"
    return f"{text}{sentences.marks(estimate)}"


class SlowProgress:
    """Prints to the standard error what is done, once work has taken more than two seconds."""

    def __init__(self, verb: str) -> None:
        self._verb, self._last = verb, time.monotonic()

    def __call__(self, name: str, done: int, total: int) -> None:
        """Print a line if the last one, or the beginning, is some seconds ago."""
        now = time.monotonic()
        if now - self._last > SILENT_SECONDS:
            self._last = now
            click.echo(f"{self._verb} {name} ({done + 1} of {total})", err=True)


@contextmanager
def slow(sentence: str) -> Iterator[None]:
    """Print a sentence to the standard error if what is done inside takes more than two seconds."""
    timer = threading.Timer(SILENT_SECONDS, click.echo, [sentence], {"err": True})
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


SILENT_SECONDS = 2.0
"""Work that takes longer says what it does."""


class Warnings(NamedTuple):
    """The warnings that were printed as marks, by kind: a sentence for each policy."""

    kinds: dict[str, dict[str, str]]

    def marks(self, estimate: Estimate) -> str:
        """Return the numbers of the warnings of an estimate, and remember new ones."""
        marks = []
        for sentence in estimate.cautions:
            kind = kind_of(sentence)
            self.kinds.setdefault(kind, {}).setdefault(estimate.policy, sentence)
            marks.append(str(list(self.kinds).index(kind) + 1))
        return f" [yellow]! {' '.join(marks)}[/yellow]" if marks else ""

    def lines(self) -> Iterator[str]:
        """Yield one line for each kind, with the numbers of the first policy."""
        for place, by_policy in enumerate(self.kinds.values(), 1):
            (policy, sentence), *others = by_policy.items()
            similar = [name for name, other in others if other != sentence]
            concerned = f" ({policy}; similarly {some_names(similar)})" if similar else ""
            yield f"Warning {place}: {sentence}{concerned}"


def top_policies(comparison: Comparison, top: int) -> list[str]:
    """Return the policies with the highest recommended estimates, the best first."""
    # Values that are not a number come last.
    ordered = sorted(
        comparison.recommended()[1:], key=lambda one: (math.isnan(one.value), -one.value)
    )
    return [one.policy for one in ordered[:top]]


def _interval(estimate: Estimate) -> str:
    return f"[{_number(estimate.interval.low)}, {_number(estimate.interval.high)}]"


def _rows(needed: float) -> str:
    """Return a number of rows with two significant digits, such as 22,000."""
    return f"{float(f'{needed:.2g}'):,.0f}"


def _number(value: float) -> str:
    return "?" if math.isnan(value) else f"{value:.4g}"


def print_best(best: "BestPolicy", with_notes: bool = True) -> None:
    """Print a table of all candidates with the winner marked, notes and warnings."""
    rows = best.rows()
    if rows and best.report is not None:
        wide = Console(width=max(Console().width, WIDTH))
        logged = best.report.estimates[0]
        rows_of_report = f"{logged.diagnostics.rows} held-out rows"
        if (lift := best.lift()) is not None:
            ends = f"[{lift.interval.low:+.4g}, {lift.interval.high:+.4g}]"
            wide.print(
                f"{best.winner} minus the log, by {lift.estimator}: {lift.value:+.4g} {ends} on "
                f"the {rows_of_report}",
                markup=False,
                soft_wrap=True,
            )
        wide.print(f"logging policy: {logged.value:.4f} on the {rows_of_report}")
        wide.print(_table_of_candidates(best, rows))
        for one in rows:
            if one["winner"] and one["warnings"]:
                wide.print(f"Warning: {one['policy']}: {one['warnings']}", markup=False)
    for note in best.notes if with_notes else []:
        click.echo(f"Note: {note}")
    for sentence in best.warnings:
        click.echo(f"Warning: {sentence}")


def _table_of_candidates(best: "BestPolicy", rows: list[dict[str, object]]) -> Table:
    level = f"{best.report.level:.0%}" if best.report is not None else ""
    table = Table(box=None, pad_edge=False, header_style="")
    table.add_column("policy", overflow="fold", min_width=NAME_WIDTH)
    for heading in (
        "value",
        f"{level} interval",
        "estimator",
        "loss against the winner (dr)",
        "selection rows",
    ):
        table.add_column(heading, justify="right")
    for one in sorted(rows, key=lambda row: float(str(row["behind"]))):
        mark = "* " if one["winner"] else "  "
        table.add_row(
            escape(f"{mark}{one['policy']}"),
            f"{one['value']:.4f}",
            escape(f"[{one['low']:.4f}, {one['high']:.4f}]"),
            str(one["estimator"]),
            "" if one["winner"] else f"{one['behind']:.4f} ± {one['behind_error']:.4f}",
            f"{one['choosing_rows']}",
        )
    return table


def is_evaluation(directory: Path) -> bool:
    """Return whether a directory was written by ``submax evaluate``, not by an experiment."""
    return (directory / ESTIMATES).is_file() and not (directory / MANIFEST).exists()


def redraw_evaluation(directory: Path, policies: Sequence[str] = ()) -> None:
    """Draw the forest plot in the directory again, of all policies or only of some.

    If there were several rewards, the plot in the folder of each of them is drawn again.
    """
    rows = read_csv(directory / ESTIMATES)
    rewards = list(dict.fromkeys(row["reward"] for row in rows if "reward" in row))
    for reward in rewards:
        redraw_evaluation(directory / reward, policies)
    if rewards:
        return
    known = list(dict.fromkeys(row["policy"] for row in rows[1:]))
    for name in policies:
        one_of(f"policy of {directory}:", name, known)
    for path in draw_forest(directory, policies):
        click.echo(f"Written: {path}")
