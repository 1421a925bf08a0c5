"""Prints which of several policies was learned from a log, and what each would have earned."""

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from submax.cli.logs.evaluation_report import WIDTH
from submax.evaluation.choosing.best_policy import BestPolicy


def print_best(best: BestPolicy, with_notes: bool = True) -> None:
    """Print a table of all candidates with the winner marked, notes and warnings."""
    rows = best.rows()
    if rows and best.report is not None:
        wide = Console(width=max(Console().width, WIDTH))
        logged = best.report.estimates[0]
        wide.print(
            f"logging policy: {logged.value:.4f} on the {logged.diagnostics.rows} rows of the "
            "report"
        )
        wide.print(_table(best, rows))
        for one in rows:
            if one["winner"] and one["warnings"]:
                wide.print(f"Warning: {one['policy']}: {one['warnings']}", markup=False)
    for note in best.notes if with_notes else []:
        click.echo(f"Note: {note}")
    for sentence in best.warnings:
        click.echo(f"Warning: {sentence}")


def _table(best: BestPolicy, rows: list[dict[str, object]]) -> Table:
    level = f"{best.report.level:.0%}" if best.report is not None else ""
    table = Table(box=None, pad_edge=False, header_style="")
    table.add_column("policy")
    for heading in ("value", f"{level} interval", "estimator", "behind, by dr", "choosing rows"):
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
