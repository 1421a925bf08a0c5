"""Prints and writes the results of off-policy evaluations."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from submax.evaluation.report.comparisons.comparison import Comparison
from submax.evaluation.report.comparisons.difference import Difference
from submax.evaluation.report.estimate import DECISION, LOGGING_POLICY, Estimate
from submax.evaluation.report.recommendation import rule_of
from submax.simulation.figures.forest import ESTIMATES
from submax.simulation.results import write_csv

POLICIES_PER_TABLE = 3
"""Policies side by side in one table: three columns of intervals fit into ``WIDTH``."""
DIFFERENCES = "differences.csv"
"""The file of the differences between policies."""
SLICES = "slices.csv"
"""The file of the estimates of slices."""
WIDTH = 110
"""Characters of a line if the terminal is narrower or its width is not known."""


class PrintOptions(NamedTuple):
    """What to print beside the recommended estimates.

    If ``every``, all estimates are printed. If ``half_width`` or ``effect`` is given, a sentence
    says how many rows would be needed for an interval of this half-width, or to find a difference
    as large as this effect.
    """

    every: bool = False
    half_width: float | None = None
    effect: float | None = None


RECOMMENDED_ONLY = PrintOptions()
"""Print only the recommended estimates."""


def print_comparison(comparison: Comparison, options: PrintOptions = RECOMMENDED_ONLY) -> None:
    """Print the recommended estimate of each policy, or all, with warnings and notes below."""
    every = options.every
    console = Console()
    wide = Console(width=max(console.width, WIDTH))
    logged = comparison.estimates[0]
    sentences: list[str] = []
    names = [name for name in comparison.policies() if name != LOGGING_POLICY]
    marks = _marks(logged, sentences)
    wide.print(
        f"{LOGGING_POLICY}: {_number(logged.value)} {escape(_interval(logged))}{marks}, the mean "
        f"reward of {logged.diagnostics.rows} {comparison.units}"
    )
    if every:
        for first in range(0, len(names), POLICIES_PER_TABLE):
            wide.print(_table(comparison, names[first : first + POLICIES_PER_TABLE], sentences))
    else:
        wide.print(_recommended_table(comparison, sentences))
    for one in comparison.differences:
        if one.recommended:
            wide.print(_difference_line(one, comparison.units), markup=False, soft_wrap=True)
    for sentence in _rows_needed(comparison, options):
        wide.print(sentence, markup=False, soft_wrap=True)
    for number, sentence in enumerate(sentences, 1):
        wide.print(f"Warning {number}: {sentence}", markup=False, soft_wrap=True)
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
        f"{text}; the sign is not clear: if the difference is as estimated, about "
        f"{_rows(needed)} evaluated {units} show it in 8 of 10 logs"
    )


def _recommended_table(comparison: Comparison, sentences: list[str]) -> Table:
    """Return a table with a row for each policy, the best first."""
    table = Table(title=_title(comparison))
    for heading in ("policy", "estimator"):
        table.add_column(heading, no_wrap=heading == "estimator", overflow="fold")
    headings = ["value", f"effective {comparison.units}", "rewarded", "largest weight"]
    headings += ["without support"] * (comparison.unit == DECISION)
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=heading == "value")
    # Values that are not a number come last.
    ordered = sorted(
        comparison.recommended()[1:], key=lambda one: (math.isnan(one.value), -one.value)
    )
    for one in ordered:
        about = one.diagnostics
        table.add_row(
            escape(one.policy),
            one.estimator,
            _cell(one, sentences),
            f"{about.effective:.0f} of {about.rows}",
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


def _table(comparison: Comparison, names: list[str], sentences: list[str]) -> Table:
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


def _cell(estimate: Estimate | None, sentences: list[str], star: str = "") -> str:
    if estimate is None:
        return "-"
    text = f"{_number(estimate.value)} {escape(_interval(estimate))}{star}"
    return f"{text}{_marks(estimate, sentences)}"


def _marks(estimate: Estimate, sentences: list[str]) -> str:
    """Return the numbers of the warnings of an estimate; new sentences are added to the list."""
    marks = []
    for sentence in estimate.cautions:
        if sentence not in sentences:
            sentences.append(sentence)
        marks.append(str(sentences.index(sentence) + 1))
    return f" [yellow]! {' '.join(marks)}[/yellow]" if marks else ""


def _interval(estimate: Estimate) -> str:
    return f"[{_number(estimate.interval.low)}, {_number(estimate.interval.high)}]"


def _rows(needed: float) -> str:
    """Return a number of rows with two significant digits, such as 22,000."""
    return f"{float(f'{needed:.2g}'):,.0f}"


def _number(value: float) -> str:
    return "?" if math.isnan(value) else f"{value:.4g}"
