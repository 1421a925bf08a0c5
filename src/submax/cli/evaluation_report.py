"""Prints and writes the results of off-policy evaluations."""

import math
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from submax.evaluation.report.comparison import Comparison
from submax.evaluation.report.estimate import LOGGING_POLICY, Estimate
from submax.experiments.directory import write_csv
from submax.plots.estimates import ESTIMATES

POLICIES_PER_TABLE = 3
"""Policies side by side in one table: three columns of intervals fit into ``WIDTH``."""
WIDTH = 110
"""Characters of a line if the terminal is narrower or its width is not known."""


def print_comparison(found: Comparison) -> None:
    """Print a table of estimators by policies, with diagnostics, warnings and notes below."""
    console = Console()
    wide = Console(width=max(console.width, WIDTH))
    logged = found.estimates[0]
    sentences: list[str] = []
    names = [name for name in found.policies() if name != LOGGING_POLICY]
    wide.print(
        f"{LOGGING_POLICY}: {_number(logged.value)} {_interval(logged)}, the mean reward of "
        f"{logged.diagnostics.rows} rows",
        markup=False,
    )
    for first in range(0, len(names), POLICIES_PER_TABLE):
        wide.print(_table(found, names[first : first + POLICIES_PER_TABLE], sentences))
    for number, sentence in enumerate(sentences, 1):
        wide.print(f"Warning {number}: {sentence}", markup=False, soft_wrap=True)
    for note in found.notes:
        wide.print(f"Note: {note}", markup=False, soft_wrap=True)


def write_estimates(directory: Path, found: Comparison) -> None:
    """Write all numbers into one CSV file, the logging policy first."""
    write_csv(directory / ESTIMATES, found.rows())


def _table(found: Comparison, names: list[str], sentences: list[str]) -> Table:
    table = Table(title=f"Expected reward per decision, {100 * found.level:g} % intervals")
    table.add_column("estimator", no_wrap=True)
    for name in names:
        table.add_column(escape(name), justify="right")
    for estimator in found.estimators()[1:]:
        cells = [_cell(found.find(name, estimator), sentences) for name in names]
        table.add_row(estimator, *cells)
    table.add_section()
    firsts = [next(one for one in found.estimates if one.policy == name) for name in names]
    diagnostics = [one.diagnostics for one in firsts]
    table.add_row("effective rows", *(f"{one.effective:.0f} of {one.rows}" for one in diagnostics))
    table.add_row("largest weight", *(f"{one.largest:.3g}" for one in diagnostics))
    means = (f"{one.mean_weight:.3f} ± {one.mean_error:.2g}" for one in diagnostics)
    table.add_row("mean weight", *means)
    table.add_row("without support", *(f"{one.unsupported:.1%}" for one in diagnostics))
    return table


def _cell(estimate: Estimate | None, sentences: list[str]) -> str:
    if estimate is None:
        return "-"
    marks = []
    for sentence in estimate.cautions:
        if sentence not in sentences:
            sentences.append(sentence)
        marks.append(str(sentences.index(sentence) + 1))
    text = f"{_number(estimate.value)} {escape(_interval(estimate))}"
    return f"{text} [yellow]! {' '.join(marks)}[/yellow]" if marks else text


def _interval(estimate: Estimate) -> str:
    return f"[{_number(estimate.interval.low)}, {_number(estimate.interval.high)}]"


def _number(value: float) -> str:
    return "?" if math.isnan(value) else f"{value:.4g}"
