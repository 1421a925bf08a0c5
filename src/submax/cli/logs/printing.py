"""Prints, writes and draws the results of the commands on logs."""

import math
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

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
from submax.evaluation.report import Warned, capital, warnings_of
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
SILENT_SECONDS = 2.0
"""Work that takes longer says what it does."""


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


def wide(line: str | Table) -> None:
    """Print a table, or a line that is not broken."""
    console = Console()
    console = Console(width=max(console.width, WIDTH))
    if isinstance(line, str):
        console.print(line, markup=False, soft_wrap=True)
    else:
        console.print(line)


def print_notes(notes: Sequence[str]) -> None:
    """Print each note on a line of its own."""
    for note in notes:
        click.echo(f"Note: {note}")


def print_comparison(comparison: Comparison, options: PrintOptions | None = None) -> None:
    """Print the recommended estimate of each policy, or all, with warnings and notes below."""
    options = options or PrintOptions()
    names, units = comparison.ranked()[: options.top], comparison.units
    shown = [
        one
        for one in comparison.estimates
        if (options.every or one.recommended) and one.policy in (LOGGING_POLICY, *names)
    ]
    warned = warnings_of(shown)
    logged = comparison.estimates[0]
    wide(comparison.answer)
    wide(
        f"{LOGGING_POLICY}: {_cell(logged, warned)}, the mean reward of {logged.diagnostics.rows} "
        f"{units}"
    )
    if options.every:
        for first in range(0, len(names), POLICIES_PER_TABLE):
            wide(_all_estimates(comparison, names[first : first + POLICIES_PER_TABLE], warned))
    else:
        wide(_recommended(comparison, names, warned))
    left_out = len(comparison.policies()) - 1 - len(names)
    if left_out > 0:
        wide(f"{left_out} more policies: --top {left_out + len(names)} prints all")
    differences = [one for one in comparison.differences if one.recommended]
    for one in sorted(
        (one for one in differences if one.policy in names), key=lambda one: names.index(one.policy)
    ):
        wide(_difference_line(one, units))
    if left_out > 0 and any(one.level <= comparison.level for one in differences):
        wide("Each difference is for one policy alone; --baseline best compares all together")
    if options.half_width is not None:
        for estimate in comparison.recommended():
            needed = _rows(estimate.rows_needed(options.half_width))
            wide(
                f"{estimate.policy}, by {estimate.estimator}: about {needed} evaluated {units} "
                f"give an interval of ±{options.half_width:g}"
            )
    for one in differences if options.effect is not None else ():
        wide(
            f"{one.policy} minus {one.baseline}, by {one.estimator}: about "
            f"{_rows(one.rows_needed(options.effect))} evaluated {units} show a difference of "
            f"{options.effect:g} in 8 of 10 logs"
        )
    for place, warning in enumerate(warned, 1):
        similar = some_names([other.concerns for other in warning.similar])
        concerned = f" ({warning.concerns}; similarly {similar})" if similar else ""
        wide(f"Warning {place}: {warning.sentence}{concerned}")
    for note in comparison.notes:
        wide(f"Note: {note}")
    if len(comparison.estimators()) > 2:
        rule = rule_of(comparison.estimators()[1:])
        wide(f"* {rule}" if options.every else f"{capital(rule)} (--all prints the others)")


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


def _table(comparison: Comparison, first: str, headings: Sequence[str]) -> Table:
    level = f"{100 * comparison.level:g} % intervals"
    table = Table(title=f"Expected reward per {comparison.unit}, {level}")
    table.add_column(first, overflow="fold")
    for heading in headings:
        side: Literal["left", "right"] = "left" if heading == "estimator" else "right"
        table.add_column(
            escape(heading), justify=side, no_wrap=side == "left" or heading == "value"
        )
    return table


def _recommended(comparison: Comparison, names: Sequence[str], warned: Sequence[Warned]) -> Table:
    """Return a table with a row for each of the named policies, the best first."""
    of_decisions = comparison.unit == DECISION
    # Headings in two lines leave room for names.
    headings = ["estimator", "value", f"effective\n{comparison.units}", "rewarded"]
    headings += ["largest\nweight", *["without\nsupport"] * of_decisions]
    table = _table(comparison, "policy", headings)
    by_policy = {one.policy: one for one in comparison.recommended()}
    for one in (by_policy[name] for name in names):
        about = one.diagnostics
        numbers = [f"{about.effective:.0f}", f"{about.effective_rewards:.1f}"]
        numbers += [f"{about.largest:.3g}", *[f"{about.unsupported:.1%}"] * of_decisions]
        table.add_row(escape(one.policy), one.estimator, escape(_cell(one, warned)), *numbers)
    return table


def _all_estimates(comparison: Comparison, names: Sequence[str], warned: Sequence[Warned]) -> Table:
    """Return a table with a row for each estimator, and a column for each of the policies."""
    table = _table(comparison, "estimator", names)
    known = {(one.policy, one.estimator): one for one in comparison.estimates}
    for estimator in comparison.estimators()[1:]:
        cells = [known.get((name, estimator)) for name in names]
        table.add_row(estimator, *(escape(_cell(one, warned, star=True)) for one in cells))
    table.add_section()
    about = [next(one for one in comparison.estimates if one.policy == name) for name in names]
    for label, text in (
        (f"effective {comparison.units}", "{0.effective:.0f} of {0.rows}"),
        ("rewarded", "{0.effective_rewards:.1f}"),
        ("largest weight", "{0.largest:.3g}"),
        ("mean weight", "{0.mean_weight:.3f} ± {0.mean_error:.2g}"),
        *[("without support", "{0.unsupported:.1%}")] * (comparison.unit == DECISION),
    ):
        table.add_row(label, *(text.format(one.diagnostics) for one in about))
    return table


def _cell(one: Estimate | None, warned: Sequence[Warned], star: bool = False) -> str:
    """Return a value with its interval, and the numbers of the warnings about it."""
    if one is None:
        return "-"
    kinds = [kind_of(each.sentence) for each in warned]
    marks = " ".join(str(kinds.index(kind_of(each)) + 1) for each in one.cautions)
    return f"{one}{'*' * (star and one.recommended)}{f' ! {marks}' if marks else ''}"


def write_estimates(directory: Path, comparison: Comparison) -> None:
    """Write the estimates, the differences and the slices, each into one CSV file."""
    write_csv(directory / ESTIMATES, comparison.rows())
    if comparison.differences:
        write_csv(directory / DIFFERENCES, [one.row() for one in comparison.differences])
    if comparison.slice_rows():
        write_csv(directory / SLICES, comparison.slice_rows())


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


def _rows(needed: float) -> str:
    """Return a number of rows with two significant digits, such as 22,000."""
    return f"{float(f'{needed:.2g}'):,.0f}"


def print_best(best: "BestPolicy", with_notes: bool = True) -> None:
    """Print a table of all candidates with the winner marked, notes and warnings."""
    rows = sorted(best.rows(), key=lambda row: float(row["behind"]))
    if rows and best.report is not None:
        logged = best.report.estimates[0]
        rows_of_report = f"{logged.diagnostics.rows} held-out rows"
        if (lift := best.lift()) is not None:
            ends = f"[{lift.interval.low:+.4g}, {lift.interval.high:+.4g}]"
            wide(
                f"{best.winner} minus the log, by {lift.estimator}: {lift.value:+.4g} {ends} on "
                f"the {rows_of_report}"
            )
        wide(f"logging policy: {logged.value:.4f} on the {rows_of_report}")
        table = Table(box=None, pad_edge=False, header_style="")
        table.add_column("policy", overflow="fold", min_width=NAME_WIDTH)
        level = f"{best.report.level:.0%} interval"
        lost = "loss vs. winner"
        for heading in ("value", level, "estimator", lost, "rows"):
            table.add_column(heading, justify="right")
        for one in rows:
            behind = "" if one["winner"] else f"{one['behind']:.4f} ± {one['behind_error']:.4f}"
            table.add_row(
                escape(f"{'*' if one['winner'] else ' '} {one['policy']}"),
                f"{one['value']:.4f}",
                escape(f"[{one['low']:.4f}, {one['high']:.4f}]"),
                str(one["estimator"]),
                behind,
                f"{one['choosing_rows']}",
            )
        wide(table)
        for one in rows:
            if one["winner"] and one["warnings"]:
                wide(f"Warning: {one['policy']}: {one['warnings']}")
    print_notes(best.notes if with_notes else ())
    for sentence in best.warnings:
        click.echo(f"Warning: {sentence}")


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
