"""Prints results, comparisons and listings of experiments, and draws figures for papers."""

import csv
import dataclasses
import math
import sys
import typing
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from submax.core.errors import InputError
from submax.core.numerics import standard_error
from submax.core.registry import Registry
from submax.policies import POLICIES
from submax.policies.presets import PRESETS
from submax.research.paper.claims import (
    EnvironmentCheck,
    environment_checks,
    illustration_statements,
    statements_of,
)
from submax.research.paper.statements import PairedComparison, Statement, Verdict
from submax.simulation.compare import POWER, Finals, PairedDifference, Side, mean_ranks
from submax.simulation.experiment import Labels, Specification
from submax.simulation.results import (
    SUMMARY,
    configurations_in,
    read_csv,
    read_specification,
    varying_labels,
)

WIDTH = 80
"""Characters of a line if the terminal is narrower or its width is not known."""
LONG_LINE = 100
"""The same for comparisons and listings, which have long columns."""
MAX_FULL_CONFIGURATIONS = 9
"""If there are more configurations than this, only the best policy of each is printed."""


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
                print(*([] if named_alike else lines), "", sep="\n")


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


def print_illustration(directory: Path, console: Console) -> None:
    """Print the expected reward of each policy, and the statements of section 3.3."""
    rows = read_csv(directory / SUMMARY)
    table = Table(title=f"Expected reward over {rows[0]['environments']} environments")
    table.add_column("policy")
    table.add_column("expected reward", justify="right")
    table.add_column("standard error", justify="right")
    for row in rows:
        mean, error = float(row["expected_reward"]), float(row["standard_error"])
        table.add_row(escape(row["policy"]), f"{mean:.4f}", f"{error:.4f}")
    wide = _wide(console)
    wide.print(table)
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
        wide.print(_offline_table(title, group))


def _offline_table(title: str, rows: list[dict[str, str]]) -> Table:
    """Return a table of estimators by policies."""
    policies = list(dict.fromkeys(row["policy"] for row in rows))
    table = Table(title=f"{title}: root mean squared error (coverage of 95 % intervals)")
    table.add_column("estimator", no_wrap=True)
    for policy in policies:
        table.add_column(escape(policy), justify="right")
    for estimator in dict.fromkeys(row["estimator"] for row in rows):
        found = {row["policy"]: row for row in rows if row["estimator"] == estimator}
        cells = [
            f"{float(row['root_mean_squared_error']):.3f} ({float(row['coverage']):.0%})"
            for row in found.values()
        ]
        table.add_row(estimator, *cells)
    table.add_section()
    first = [next(row for row in rows if row["policy"] == policy) for policy in policies]
    table.add_row("true value", *(f"{float(row['truth']):.3f}" for row in first))
    table.add_row("value of the log", *(f"{float(row['logged']):.3f}" for row in first))
    return table


def print_sweep(specification: Specification, directory: Path, console: Console) -> None:
    """Print the final values of all policies in all configurations, and the paper's statements."""
    wide = _wide(console)
    finals, section = Finals.read(directory), specification.statements
    wide.print(specification.title or specification.name, markup=False)
    measures = ["regret"] if specification.measure == "regret" else ["reward", "regret"]
    configurations = finals.configurations()
    for measure in measures:
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
        wide.print(_environment_check_table(checks))
    if section:
        wide.print(_statement_table(section, statements_of(section, finals)))


def _groups(configurations: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Group the configurations by all labels but the last one that varies.

    Each group is printed as a table of its own, which is then narrow.
    """
    varying = varying_labels(configurations)
    groups: dict[str, list[dict[str, Any]]] = {}
    for labels in configurations:
        title = ", ".join(
            f"{key} = {labels[key]}" for key in varying[:-1] if labels[key] is not None
        )
        groups.setdefault(title, []).append(labels)
    return groups


class _Column(NamedTuple):
    """The values of all policies in one configuration, and which of them tie with the best."""

    sides: dict[str, Side]
    best: str
    tied: set[str]

    @classmethod
    def of(cls, finals: Finals, measure: str, labels: dict[str, Any]) -> "_Column":
        best_of = min if measure == "regret" else max
        found = {name: finals.side(measure, name, labels) for name in finals.policies()}
        sides = {name: side for name, side in found.items() if side is not None}
        best = best_of(sides, key=lambda name: float(sides[name].values.mean()))
        tied = {
            name
            for name, side in sides.items()
            if name != best
            and PairedComparison.of("", sides[best], side).verdict is Verdict.UNDECIDED
        }
        return cls(sides, best, tied)

    def cell(self, name: str) -> str:
        if name not in self.sides:
            return "-"
        mark = "*" if name == self.best else "=" if name in self.tied else " "
        text = f"{_with_error(self.sides[name])}{mark}"
        return f"[bold]{text}[/bold]" if name == self.best else text


def _final_table(title: str, group: list[dict[str, Any]], finals: Finals, measure: str) -> Table:
    varying = varying_labels(group)
    where = f", {title}" if title else ""
    table = Table(
        title=f"Final {measure} ± standard error{where}",
        caption="* best   = within two standard errors of the best (paired)",
    )
    table.add_column("policy", no_wrap=True)
    columns = [_Column.of(finals, measure, labels) for labels in group]
    for labels in group:
        heading = ", ".join(f"{key}={labels[key]}" for key in varying)
        table.add_column(heading or measure, justify="right", no_wrap=True)
    for name in finals.policies():
        table.add_row(escape(name), *(column.cell(name) for column in columns))
    return table


def _best_table(configurations: list[dict[str, Any]], finals: Finals, measure: str) -> Table:
    """Return a table with the best policy of each configuration, if these are too many for all."""
    varying = varying_labels(configurations)
    table = Table(
        title=f"Lowest final {measure} ± standard error"
        if measure == "regret"
        else f"Highest final {measure} ± standard error",
        caption="tied: policies within two standard errors of the best (paired). "
        "All policies: summary.csv",
    )
    for key in varying:
        table.add_column(key, justify="right")
    for heading in ("best", measure, "tied"):
        table.add_column(heading, justify="left" if heading == "best" else "right")
    for labels in configurations:
        column = _Column.of(finals, measure, labels)
        values = ["" if labels[key] is None else str(labels[key]) for key in varying]
        best = _with_error(column.sides[column.best])
        table.add_row(*values, escape(column.best), best, str(len(column.tied)))
    return table


def _with_error(side: Side) -> str:
    error = standard_error(side.values)
    text = _number(float(side.values.mean()))
    return text if math.isnan(error) else f"{text} ± {_number(error)}"


def _fallback_lines(rows: Sequence[dict[str, str]]) -> Iterator[str]:
    """Yield a sentence for each policy that fell back to a simpler rule in some decisions."""
    taken: dict[str, list[int]] = {}
    for row in rows:
        counts = taken.setdefault(row["policy"], [0, 0])
        counts[0] += int(row["fallbacks"])
        counts[1] += int(row["observations"]) * int(row["replicas"])
    for policy, (fallbacks, decisions) in taken.items():
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


def _environment_check_table(found: Sequence[EnvironmentCheck]) -> Table:
    table = Table(title="Mean reward of random choice, E[R̄], here and in the paper")
    for column in ("environment", "here", "paper", "standard errors apart"):
        table.add_column(column, justify="right")
    for one in found:
        table.add_row(one.where, f"{one.mean:.4f}", f"{one.paper:.4f}", f"{one.distance:+.1f}")
    return table


def _statement_table(section: str, statements: Sequence[Statement]) -> Table:
    table = Table(
        title=f"Statements tested by {section}",
        caption="verdicts by two standard errors of paired differences; all in statements.csv",
    )
    table.add_column("statement")
    table.add_column("by", no_wrap=True)
    table.add_column("verdict")
    table.add_column("closest comparison")
    for statement in statements:
        if not statement.comparisons:
            table.add_row(statement.text, statement.source, statement.summary, "")
            continue
        one = statement.closest
        numbers = f"{one.left} {one.left_mean:.4g}, {one.right} {one.right_mean:.4g}"
        error = "" if math.isnan(one.error) else f"± {one.error:.2g}; "
        closest = escape(f"{numbers} ({error}{one.where})")
        table.add_row(statement.text, statement.source, statement.summary, closest)
    return table


def _number(value: float) -> str:
    return f"{value:.1f}" if abs(value) < 100 else f"{value:.0f}"


def _first_line(policy: object) -> str:
    return (policy.__doc__ or "").strip().splitlines()[0]


def _wide(console: Console, width: int = WIDTH) -> Console:
    return Console(file=console.file, width=max(console.width, width))


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
    varying = varying_labels([one.configuration for one in found])
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
    from submax.simulation.figures import critical_difference_figure

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
        f"{SIGNIFICANT}. Needed: the replicas that one comparison alone needs to decide a "
        f"difference of this size with a probability of {POWER:.0%}.",
    )
    varying = varying_labels([one.configuration for one in found])
    for key in varying:
        table.add_column(key, justify="right")
    interval = f"{confidence:.0%} interval"
    for heading in ("left − right", "difference", interval, "p", "replicas", "needed"):
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
            f"{one.replicas:,}",
            needed,
        )
    _wide(Console(), LONG_LINE).print(table)


def _print_csv(found: Sequence[PairedDifference]) -> None:
    rows = [one.configuration | one._asdict() for one in found]
    names = [name for name in rows[0] if name != "configuration"]
    writer = csv.DictWriter(sys.stdout, names, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def _p(value: float) -> str:
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"


def print_listing(title: str, folder: Registry[Any]) -> None:
    """Print every class of a folder by its kind, with its first sentence and its parameters."""
    print(f"{title}\n")
    for name in folder.names():
        kind = folder.find(name)
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
            parts.append(f"{field.name} = {field.default_factory()!r}")
        else:
            parts.append(f"{field.name}: {getattr(hints[field.name], '__name__', 'value')}")
    return ", ".join(parts)


def draw_columns(
    directory: Path,
    policies: Sequence[str],
    *,
    only: Sequence[str],
    measure: str | None,
    log: bool,
    ribbon: str | None,
    form: str | None,
    width: float | None,
    latex: bool,
) -> Iterator[Path]:
    """Draw the figures and yield their files; what is not given has a default."""
    # Imported here because matplotlib takes its time.
    from submax.simulation.figures import COLUMN_INCHES, curves, selected_configurations

    shown = measure or read_specification(directory).measure
    every = configurations_in(directory)
    varying = varying_labels(every)
    folder = directory / "figures"
    folder.mkdir(exist_ok=True)
    for labels in selected_configurations(directory, _wanted(only, every)):
        name = "-".join(["column", *(f"{key}={labels[key]}" for key in varying), shown])
        path = folder / f"{name.replace('/', '_').replace(':', '_')}.{form or 'pdf'}"
        figure = curves(
            directory,
            measure=shown,
            policies=policies,
            configuration=labels,
            log=log,
            ribbon=ribbon or "ci",
            width=COLUMN_INCHES if width is None else width,
            latex=latex,
        )
        figure.savefig(path)
        yield path


def _wanted(only: Sequence[str], every: Sequence[Labels]) -> Labels:
    """Return the labels of ``--only KEY=VALUE``, with the types that the results have."""
    wanted: Labels = {}
    for text in only:
        key, sign, value = text.partition("=")
        if not sign or key not in every[0]:
            raise InputError(
                f"--only must be KEY=VALUE with a key of {', '.join(every[0])}, not {text!r}"
            )
        matching = [one[key] for one in every if str(one[key]) == value]
        if not matching:
            allowed = ", ".join(dict.fromkeys(str(one[key]) for one in every))
            raise InputError(f"no configuration has {text}: allowed values are {allowed}")
        wanted[key] = matching[0]
    return wanted
