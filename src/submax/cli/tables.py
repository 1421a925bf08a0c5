"""Prints results, comparisons and listings of experiments."""

import csv
import inspect
import math
import sys
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
from submax.simulation.results import SUMMARY, read_csv, varying_labels

WIDTH, LONG_LINE = 80, 100
"""Characters of a line, and of one with long columns, if the terminal is narrower or unknown."""
MAX_FULL_CONFIGURATIONS = 4
"""If there are more configurations than this, only the best policy of each is printed."""
SIGNIFICANT = 0.05
"""Corrected p-values below this are marked."""


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
        justify: Any = "left" if number in texts else "right"
        table.add_column(escape(heading), justify=justify, no_wrap=not number)
    for row in rows:
        table.add_row(*map(escape, row))
    return table


# What can be named ----------------------------------------------------------------------


def print_policies() -> None:
    """Print every preset below its kind, with the parameters that are not the defaults."""
    groups: dict[str, list[str]] = {}
    for name, table in PRESETS.items():
        given = ", ".join(f"{key}={_brief(value)}" for key, value in table.items() if key != "kind")
        groups.setdefault(table["kind"], []).append(f"  {name:34} {given}".rstrip())
    for package, title in (("submax.policies", ""), ("submax.research", " of submax.research")):
        print(f"Policies{title}\n")
        for kind, lines in groups.items():
            described = POLICIES.find(kind)
            if described.__module__.startswith(package):
                print(_described(kind, described))
                print(*([] if lines == [f"  {kind}"] else lines), "", sep="\n")


def _brief(value: Any) -> str:
    if isinstance(value, dict):
        inner = ", ".join(f"{key}={_brief(one)}" for key, one in value.items() if key != "kind")
        return value.get("kind", "") + (f"({inner})" if inner else "")
    return " + ".join(map(_brief, value)) if isinstance(value, list) else str(value)


def print_listing(title: str, registry: Registry[Any]) -> None:
    """Print every class of a registry by its kind, with its first sentence and its parameters."""
    print(
        title, "", *(_described(name, registry.find(name)) for name in registry.names()), sep="\n"
    )


def _described(name: str, kind: type) -> str:
    """A class, and its parameters with their defaults."""
    about = (kind.__doc__ or "").strip().splitlines()[0].replace("``", "")
    given = inspect.signature(kind).parameters.values()
    plain = [one.replace(annotation=one.empty) for one in given]
    return f"{name}: {about}" + (f"\n  {', '.join(map(str, plain))}" if plain else "")


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
    wide, rows = _wide(console, LONG_LINE), read_csv(directory / SUMMARY)
    names = list(rows[0])
    labels = [one for one in names[: names.index("policy")] if len({row[one] for row in rows}) > 1]
    cells = [
        [
            *(row[name] for name in (*labels, "policy", "estimator")),
            *(f"{float(row[name]):.3f}" for name in ("truth", "root_mean_squared_error")),
            f"{float(row['coverage']):.0%}",
        ]
        for row in rows
    ]
    headings = [*labels, "policy", "estimator", "true value", "root mean squared error"]
    title = specification.title or specification.name
    texts = range(len(labels) + 2)
    caption = "coverage: of 95 % intervals"
    wide.print(_table(title, [*headings, "coverage"], cells, caption, texts=texts))


def print_sweep(specification: Specification, directory: Path, console: Console) -> None:
    """Print the final values of all policies in all configurations, and the paper's statements."""
    wide = _wide(console)
    finals, section = Finals.read(directory), specification.statements
    wide.print(specification.title or specification.name, markup=False)
    configurations = finals.configurations()
    for measure in ["regret"] if specification.measure == "regret" else ["reward", "regret"]:
        many = len(configurations) > MAX_FULL_CONFIGURATIONS
        wide.print((_best_table if many else _final_table)(configurations, finals, measure))
    for line in _spent_lines(read_csv(directory / SUMMARY)):
        wide.print(line, markup=False, soft_wrap=True)
    if checks := list(environment_checks(section, finals, specification.observations)):
        title = "Mean reward of random choice, E[R̄], here and in the paper"
        headings = ("environment", "here", "paper", "standard errors apart")
        cells = (
            [one.where, f"{one.mean:.4f}", f"{one.paper:.4f}", f"{one.distance:+.1f}"]
            for one in checks
        )
        wide.print(_table(title, headings, cells))
    if section:
        wide.print(_statement_table(section, statements_of(section, finals)))


def _sides(finals: Finals, measure: str, labels: Labels) -> tuple[dict[str, Side], str, set[str]]:
    """The values of all policies in one configuration, the best one, and those that tie with it."""
    found = {name: finals.side(measure, name, labels) for name in finals.policies()}
    sides = {name: side for name, side in found.items() if side is not None}
    best_of = min if measure == "regret" else max
    best = best_of(sides, key=lambda name: float(sides[name].values.mean()))
    tied = {
        name
        for name, side in sides.items()
        if name != best and PairedComparison.of("", sides[best], side).verdict is Verdict.UNDECIDED
    }
    return sides, best, tied


def _final_table(configurations: list[Labels], finals: Finals, measure: str) -> Table:
    varying = varying_labels(configurations)
    headings, columns = ["policy"], []
    for labels in configurations:
        headings.append(", ".join(f"{key}={labels[key]}" for key in varying) or measure)
        sides, best, tied = _sides(finals, measure, labels)
        marks = {best: "*", **dict.fromkeys(tied, "=")}
        columns.append({name: _with_error(sides[name]) + marks.get(name, " ") for name in sides})
    return _table(
        f"Final {measure} ± standard error",
        headings,
        ([name, *(column.get(name, "-") for column in columns)] for name in finals.policies()),
        "*: the best; =: within two standard errors of the best (paired)",
    )


def _best_table(configurations: list[Labels], finals: Finals, measure: str) -> Table:
    """The best policy of each configuration, if these are too many for all."""
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
    mean, error = float(side.values.mean()), standard_error(side.values)
    texts = [f"{one:.1f}" if abs(one) < 100 else f"{one:.0f}" for one in (mean, error)]
    return texts[0] if math.isnan(error) else " ± ".join(texts)


def _spent_lines(rows: Sequence[dict[str, str]]) -> Iterator[str]:
    """How all processes together spent their time, and which policies fell back how often."""
    parts = ("deciding", "training", "compiling")
    spent = {part: sum(float(row[f"{part}_seconds"]) for row in rows) for part in parts}
    total = sum(float(row["seconds"]) for row in rows)
    words = ", ".join(f"{part} {seconds:.0f} s" for part, seconds in spent.items())
    rest = total - sum(spent.values())
    yield f"Processor time of all cells: {total:.0f} s ({words}, the environments {rest:.0f} s)"
    for policy in dict.fromkeys(row["policy"] for row in rows):
        own = [row for row in rows if row["policy"] == policy]
        fallbacks = sum(int(row["fallbacks"]) for row in own)
        decisions = sum(int(row["observations"]) * int(row["replicas"]) for row in own)
        if fallbacks:
            yield (
                f"{policy}: {fallbacks} of {decisions} decisions fell back to a simpler rule, "
                "because the configured one could not be computed (column fallbacks of summary.csv)"
            )


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


def print_comparison(
    found: Sequence[PairedDifference], measure: str, confidence: float, form: str
) -> None:
    """Print the differences; ``form`` is "table" or "csv"."""
    if form == "csv":
        rows = [one.configuration | one._asdict() for one in found]
        names = [name for name in rows[0] if name != "configuration"]
        writer = csv.DictWriter(sys.stdout, names, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return
    varying = varying_labels([one.configuration for one in found])
    interval = f"{confidence:.0%} interval"
    cells = [
        [
            *(str(one.configuration[key]) for key in varying),
            f"{one.left} − {one.right}",
            f"{one.difference:.4g} ± {one.error:.2g}",
            f"{one.low:.4g} … {one.high:.4g}",
            ("< 0.0001" if one.corrected < 0.0001 else f"{one.corrected:.4f}")
            + ("*" if one.corrected < SIGNIFICANT else " "),
            f"{one.replicas:,}",
            "-" if one.replicas_needed is None else f"{one.replicas_needed:,}",
        ]
        for one in found
    ]
    table = _table(
        f"Paired differences of the final {measure.replace('_', ' ')}",
        [*varying, "left − right", "difference", interval, "p (Holm)", "replicas", "needed"],
        cells,
        f"p: paired t-test, corrected by Holm for {len(found)} comparisons; * below {SIGNIFICANT}. "
        "Needed: the replicas that one comparison alone needs to decide a difference of this size "
        f"with a probability of {POWER:.0%}.",
        texts=[len(varying)],
    )
    _wide(Console(), LONG_LINE).print(table)
