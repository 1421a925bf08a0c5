"""Prints comparisons of policies as a table in the terminal, as CSV or as LaTeX."""

import csv
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from submax.core.errors import InputError
from submax.simulation.compare import POWER, PairedDifference, mean_ranks

WIDTH = 100
"""Characters of a line if the terminal is narrower or its width is not known."""
SIGNIFICANT = 0.05
"""Corrected p-values below this are marked."""
LATEX = str.maketrans({"_": r"\_", "%": r"\%", "&": r"\&", "#": r"\#"})
"""Characters with a meaning in LaTeX."""


def print_comparison(
    found: Sequence[PairedDifference], measure: str, confidence: float, form: str
) -> None:
    """Print the differences; ``form`` is "table", "csv" or "latex"."""
    if form == "csv":
        _print_csv(found)
    elif form == "latex":
        print(latex_table(found, confidence))
    else:
        _print_table(found, measure, confidence)


def latex_table(found: Sequence[PairedDifference], confidence: float) -> str:
    """Return the differences as a table for LaTeX with the package booktabs."""
    varying = _varying(found)
    heads = [*varying, "policies", "difference", f"{confidence:.0%} interval", "$p$ (Holm)"]
    lines = [
        rf"\begin{{tabular}}{{{'l' * (len(varying) + 1)}rrr}}",
        r"\toprule",
        " & ".join(head.translate(LATEX) for head in heads) + r" \\",
        r"\midrule",
    ]
    for one in found:
        values = [str(one.configuration[key]).translate(LATEX) for key in varying]
        names = f"{one.left} $-$ {one.right}".translate(LATEX)
        numbers = [
            f"${one.difference:.3g} \\pm {one.error:.2g}$",
            f"$[{one.low:.3g}, {one.high:.3g}]$",
            f"${_p(one.corrected)}$",
        ]
        lines.append(" & ".join([*values, names, *numbers]) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def draw_ranks(
    directory: Path, policies: Sequence[str], measure: str, confidence: float, file: Path
) -> None:
    """Draw the critical-difference diagram into a file."""
    if file.suffix not in (".pdf", ".png", ".svg"):
        raise InputError(f"--ranks must end in .pdf, .png or .svg, not {str(file)!r}")
    found = mean_ranks(directory, policies, measure=measure, confidence=confidence)
    # Imported here because matplotlib takes its time.
    from submax.plots import critical_difference_figure

    figure = critical_difference_figure(found.ranks, found.critical_difference, found.groups())
    figure.savefig(file)
    print(
        f"{file}: mean ranks in {found.configurations} configurations, Friedman's test p = "
        f"{_p(found.p_value)}"
    )


def _print_table(found: Sequence[PairedDifference], measure: str, confidence: float) -> None:
    table = Table(
        title=f"Paired differences of the final {measure.replace('_', ' ')}",
        caption=f"p: paired t-test, corrected by Holm for {len(found)} comparisons; * below "
        f"{SIGNIFICANT}. Replicas: those there are, of those that one comparison alone needs to "
        f"decide a difference of this size with a probability of {POWER:.0%}.",
    )
    varying = _varying(found)
    for key in varying:
        table.add_column(key, justify="right")
    for heading in ("left − right", "difference", f"{confidence:.0%} interval", "p", "replicas"):
        table.add_column(heading, justify="left" if heading == "left − right" else "right")
    for one in found:
        star = "*" if one.corrected < SIGNIFICANT else " "
        needed = "-" if one.replicas_needed is None else f"{one.replicas_needed:,}"
        table.add_row(
            *(str(one.configuration[key]) for key in varying),
            escape(f"{one.left} − {one.right}"),
            f"{one.difference:.4g} ± {one.error:.2g}",
            f"{one.low:.4g} … {one.high:.4g}",
            f"{_p(one.corrected)}{star}",
            f"{one.replicas} of {needed}",
        )
    console = Console()
    Console(file=console.file, width=max(console.width, WIDTH)).print(table)


def _print_csv(found: Sequence[PairedDifference]) -> None:
    rows = [one.configuration | one._asdict() for one in found]
    names = [name for name in rows[0] if name != "configuration"]
    writer = csv.DictWriter(sys.stdout, names, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def _varying(found: Sequence[PairedDifference]) -> list[str]:
    """Return the labels that have more than one value."""
    keys = list(found[0].configuration)
    return [key for key in keys if len({str(one.configuration[key]) for one in found}) > 1]


def _p(value: float) -> str:
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"
