"""Prints results, comparisons and listings of experiments."""

import csv
import dataclasses
import math
import sys
import typing
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from submax.core.numerics import standard_error
from submax.core.registry import Registry
from submax.policies import POLICIES
from submax.policies.presets import PRESETS
from submax.research.paper.claims import (
    PairedComparison,
    Statement,
    Verdict,
    environment_checks,
    illustration_statements,
    statements_of,
)
from submax.simulation.compare import POWER, Finals, PairedDifference, Side
from submax.simulation.experiment import Labels, Specification
from submax.simulation.results import (
    SUMMARY,
    read_csv,
    varying_labels,
)

WIDTH = 80
"""Characters of a line if the terminal is narrower or its width is not known."""
LONG_LINE = 100
"""The same for comparisons and listings, which have long columns."""
MAX_FULL_CONFIGURATIONS = 9
"""If there are more configurations than this, only the best policy of each is printed."""


def _wide(console: Console, width: int = WIDTH) -> Console:
    return Console(file=console.file, width=max(console.width, width))


def _table(
    title: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    caption: str | None = None,
    *,
    texts: Iterable[int] = (0,),
) -> Table:
    """A table whose columns are aligned right, but for those with ``texts``; cells are no markup.

    The first column is not broken into lines.
    """
    table = Table(title=escape(title), caption=caption)
    for number, heading in enumerate(headings):
        is_text = number in texts
        table.add_column(
            escape(heading), justify="left" if is_text else "right", no_wrap=not number
        )
    for row in rows:
        table.add_row(*map(escape, row))
    return table


def _number(value: float) -> str:
    return f"{value:.1f}" if abs(value) < 100 else f"{value:.0f}"


# What can be named ----------------------------------------------------------------------


def print_policies() -> None:
    """Print every preset below its kind, with the parameters that are not the defaults."""
    groups: dict[str, list[str]] = {}
    for name, table in PRESETS.items():
        line = f"  {name:34} {_differing(table)}".rstrip()
        groups.setdefault(table["kind"], []).append(line)
    for package, title in (("submax.policies", ""), ("submax.research", " of submax.research")):
        print(f"Policies{title}\n")
        for kind, lines in groups.items():
            described = POLICIES.find(kind)
            if described.__module__.startswith(package):
                named_alike = lines == [f"  {kind}"]
                print(f"{kind}: {_first_line(described)}")
                parameters = [f"  parameters: {one}" for one in [_parameters(described)] if one]
                print(*parameters, *([] if named_alike else lines), "", sep="\n")


def _differing(table: dict[str, Any]) -> str:
    """Say what a table gives besides its kind."""
    return ", ".join(f"{key}={_brief(value)}" for key, value in table.items() if key != "kind")


def _brief(value: Any) -> str:
    if isinstance(value, dict):
        inner = _differing(value)
        return value.get("kind", "") + (f"({inner})" if inner else "")
    if isinstance(value, list):
        return " + ".join(map(_brief, value))
    return str(value).rpartition(".")[2] if isinstance(value, str) else str(value)


def print_listing(title: str, registry: Registry[Any]) -> None:
    """Print every class of a registry by its kind, with its first sentence and its parameters."""
    print(f"{title}\n")
    for name in registry.names():
        kind = registry.find(name)
        print(f"{name}: {_first_line(kind)}", *filter(None, [_parameters(kind)]), sep="\n  ")


def _parameters(kind: type) -> str:
    """Return the parameters as they are written in a TOML table."""
    if not dataclasses.is_dataclass(kind):
        return ""
    hints = typing.get_type_hints(kind)
    parts = []
    for field in dataclasses.fields(kind):
        if field.default is None:
            parts.append(f"{field.name} (optional)")
        elif field.default is not dataclasses.MISSING:
            parts.append(f"{field.name} = {field.default!r}")
        elif field.default_factory is not dataclasses.MISSING:
            made = field.default_factory()
            shown = type(made).__name__ if dataclasses.is_dataclass(made) else repr(made)
            parts.append(f"{field.name} = {shown}")
        else:
            parts.append(f"{field.name}: {getattr(hints[field.name], '__name__', 'value')}")
    return ", ".join(parts)


def _first_line(described: object) -> str:
    return (described.__doc__ or "").strip().splitlines()[0].replace("``", "")


# Results --------------------------------------------------------------------------------


def print_illustration(specification: Specification, directory: Path, console: Console) -> None:
    """Print the expected reward of each policy, and the statements of section 3.3."""
    rows, wide = read_csv(directory / SUMMARY), _wide(console)
    title = f"Expected reward over {rows[0]['environments']} environments"
    numbers = ("expected_reward", "standard_error")
    cells = [[row["policy"], *(f"{float(row[one]):.4f}" for one in numbers)] for row in rows]
    wide.print(_table(title, ("policy", "expected reward", "standard error"), cells))
    statements = illustration_statements(directory)
    if any(statement.comparisons for statement in statements):
        wide.print(_statement_table("section 3.3", statements))


def print_offline(specification: Specification, directory: Path, console: Console) -> None:
    """Print the true value of each policy, and the error of each estimator."""
    wide, rows = _wide(console), read_csv(directory / SUMMARY)
    wide.print(specification.title or specification.name, markup=False)
    names = list(rows[0])
    labels = names[: names.index("policy")]
    varying = [name for name in labels if len({row[name] for row in rows}) > 1]
    groups: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        groups.setdefault(", ".join(row[name] for name in varying), []).append(row)
    for title, group in groups.items():
        found: dict[str, dict[str, str]] = {}
        for row in group:
            error, share = float(row["root_mean_squared_error"]), float(row["coverage"])
            for line, text in (
                (row["estimator"], f"{error:.3f} ({share:.0%})"),
                ("true value", f"{float(row['truth']):.3f}"),
                ("value of the log", f"{float(row['logged']):.3f}"),
            ):
                found.setdefault(line, {})[row["policy"]] = text
        values = [(line, found.pop(line)) for line in ("true value", "value of the log")]
        lines = [[line, *cells.values()] for line, cells in (*found.items(), *values)]
        heading = f"{title}: root mean squared error (coverage of 95 % intervals)"
        wide.print(_table(heading, ["estimator", *values[0][1]], lines))


def print_sweep(specification: Specification, directory: Path, console: Console) -> None:
    """Print the final values of all policies in all configurations, and the paper's statements."""
    wide = _wide(console)
    finals, section = Finals.read(directory), specification.statements
    wide.print(specification.title or specification.name, markup=False)
    configurations = finals.configurations()
    for measure in ["regret"] if specification.measure == "regret" else ["reward", "regret"]:
        if len(configurations) > MAX_FULL_CONFIGURATIONS:
            wide.print(_best_table(configurations, finals, measure))
        else:
            for title, group in _groups(configurations).items():
                wide.print(_final_table(title, group, finals, measure))
    summary = read_csv(directory / SUMMARY)
    wide.print(_seconds_line(summary))
    for line in _fallback_lines(summary):
        wide.print(line, markup=False, soft_wrap=True)
    if checks := list(environment_checks(section, finals, specification.observations)):
        wide.print(
            _table(
                "Mean reward of random choice, E[R̄], here and in the paper",
                ("environment", "here", "paper", "standard errors apart"),
                (
                    [one.where, f"{one.mean:.4f}", f"{one.paper:.4f}", f"{one.distance:+.1f}"]
                    for one in checks
                ),
            )
        )
    if section:
        wide.print(_statement_table(section, statements_of(section, finals)))


def _groups(configurations: list[Labels]) -> dict[str, list[Labels]]:
    """Group the configurations by all labels but the last one that varies.

    Each group is printed as a table of its own, which is then narrow.
    """
    varying = varying_labels(configurations)
    groups: dict[str, list[Labels]] = {}
    for labels in configurations:
        title = ", ".join(
            f"{key} = {labels[key]}" for key in varying[:-1] if labels[key] is not None
        )
        groups.setdefault(title, []).append(labels)
    return groups


def _sides(finals: Finals, measure: str, labels: Labels) -> tuple[dict[str, Side], str, set[str]]:
    """The values of all policies in one configuration, the best one, and those that tie with it."""
    found = {name: finals.side(measure, name, labels) for name in finals.policies()}
    sides = {name: side for name, side in found.items() if side is not None}
    best_of = min if measure == "regret" else max
    best = best_of(sides, key=lambda name: float(sides[name].values.mean()))
    compared = {
        name: PairedComparison.of("", sides[best], side)
        for name, side in sides.items()
        if name != best
    }
    tied = {name for name, one in compared.items() if one.verdict is Verdict.UNDECIDED}
    return sides, best, tied


def _final_table(title: str, group: list[Labels], finals: Finals, measure: str) -> Table:
    varying = varying_labels(group)
    headings, columns = ["policy"], []
    for labels in group:
        headings.append(", ".join(f"{key}={labels[key]}" for key in varying) or measure)
        sides, best, tied = _sides(finals, measure, labels)
        marks = {best: "*", **dict.fromkeys(tied, "=")}
        columns.append({name: _with_error(sides[name]) + marks.get(name, " ") for name in sides})
    return _table(
        f"Final {measure} ± standard error{f', {title}' if title else ''}",
        headings,
        ([name, *(column.get(name, "-") for column in columns)] for name in finals.policies()),
        "*: the best; =: within two standard errors of the best (paired)",
    )


def _best_table(configurations: list[Labels], finals: Finals, measure: str) -> Table:
    """Return a table with the best policy of each configuration, if these are too many for all."""
    varying, rows = varying_labels(configurations), []
    for labels in configurations:
        sides, best, tied = _sides(finals, measure, labels)
        values = ["" if labels[key] is None else str(labels[key]) for key in varying]
        rows.append([*values, best, _with_error(sides[best]), str(len(tied))])
    return _table(
        f"{'Lowest' if measure == 'regret' else 'Highest'} final {measure} ± standard error",
        [*varying, "best", measure, "tied"],
        rows,
        "tied: policies within two standard errors of the best (paired). All policies: summary.csv",
        texts=[len(varying)],
    )


def _with_error(side: Side) -> str:
    error = standard_error(side.values)
    text = _number(float(side.values.mean()))
    return text if math.isnan(error) else f"{text} ± {_number(error)}"


def _fallback_lines(rows: Sequence[dict[str, str]]) -> Iterator[str]:
    """Yield a sentence for each policy that fell back to a simpler rule in some decisions."""
    for policy in dict.fromkeys(row["policy"] for row in rows):
        own = [row for row in rows if row["policy"] == policy]
        fallbacks = sum(int(row["fallbacks"]) for row in own)
        decisions = sum(int(row["observations"]) * int(row["replicas"]) for row in own)
        if fallbacks:
            yield (
                f"{policy}: {fallbacks} of {decisions} decisions fell back to a simpler rule, "
                "because the configured one could not be computed (column fallbacks of summary.csv)"
            )


def _seconds_line(rows: Sequence[dict[str, str]]) -> str:
    """Return a sentence about how all processes together spent their time."""
    parts = ("deciding", "training", "compiling")
    spent = {part: sum(float(row[f"{part}_seconds"]) for row in rows) for part in parts}
    total = sum(float(row["seconds"]) for row in rows)
    words = ", ".join(f"{part} {seconds:.0f} s" for part, seconds in spent.items())
    rest = total - sum(spent.values())
    return f"Processor time of all cells: {total:.0f} s ({words}, the environments {rest:.0f} s)"


def _statement_table(section: str, statements: Sequence[Statement]) -> Table:
    rows = []
    for statement in statements:
        closest = ""
        if statement.comparisons:
            one = statement.closest
            error = "" if math.isnan(one.error) else f"± {one.error:.2g}; "
            means = f"{one.left} {one.left_mean:.4g}, {one.right} {one.right_mean:.4g}"
            closest = f"{means} ({error}{one.where})"
        rows.append([statement.source, statement.text, statement.summary, closest])
    return _table(
        f"Statements tested by {section}",
        ("by", "statement", "verdict", "closest comparison"),
        rows,
        "verdicts by paired t-tests, corrected by Holm within a statement; all in statements.csv",
        texts=range(4),
    )


# Comparisons ----------------------------------------------------------------------------

SIGNIFICANT = 0.05
"""Corrected p-values below this are marked."""
LATEX = str.maketrans(
    {"_": r"\_", "%": r"\%", "&": r"\&", "#": r"\#", "−": "$-$", "±": r"$\pm$", "<": "$<$"}
)
"""Characters that LaTeX writes in another way."""


def print_comparison(
    found: Sequence[PairedDifference], measure: str, confidence: float, form: str
) -> None:
    """Print the differences; ``form`` is "table", "csv" or "latex" with the package booktabs."""
    if form == "csv":
        rows = [one.configuration | one._asdict() for one in found]
        names = [name for name in rows[0] if name != "configuration"]
        writer = csv.DictWriter(sys.stdout, names, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return
    varying = varying_labels([one.configuration for one in found])
    headings = [*varying, "left − right", "difference", f"{confidence:.0%} interval", "p (Holm)"]
    cells = [
        [
            *(str(one.configuration[key]) for key in varying),
            f"{one.left} − {one.right}",
            f"{one.difference:.4g} ± {one.error:.2g}",
            f"{one.low:.4g} … {one.high:.4g}",
            "< 0.0001" if one.corrected < 0.0001 else f"{one.corrected:.4f}",
        ]
        for one in found
    ]
    if form == "latex":
        translated = ([cell.translate(LATEX) for cell in row] for row in (headings, *cells))
        lines = [" & ".join(row) + r" \\" for row in translated]
        columns = "l" * (len(varying) + 1) + "rrr"
        print(rf"\begin{{tabular}}{{{columns}}}", r"\toprule", lines[0], r"\midrule", sep="\n")
        print(*lines[1:], r"\bottomrule", r"\end{tabular}", sep="\n")
        return
    for row, one in zip(cells, found, strict=True):
        row[-1] += "*" if one.corrected < SIGNIFICANT else " "
        needed = "-" if one.replicas_needed is None else f"{one.replicas_needed:,}"
        row += [f"{one.replicas:,}", needed]
    table = _table(
        f"Paired differences of the final {measure.replace('_', ' ')}",
        [*headings, "replicas", "needed"],
        cells,
        f"p: paired t-test, corrected by Holm for {len(found)} comparisons; * below {SIGNIFICANT}. "
        "Needed: the replicas that one comparison alone needs to decide a difference of this size "
        f"with a probability of {POWER:.0%}.",
        texts=[len(varying)],
    )
    _wide(Console(), LONG_LINE).print(table)
