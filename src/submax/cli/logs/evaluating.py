"""Carries out the command that evaluates policies on a log."""

import shlex
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click

from submax.cli.logs.evaluation_report import (
    PrintOptions,
    print_comparison,
    print_notes,
    write_estimates,
)
from submax.cli.logs.given_policies import (
    candidate_of,
    combinations_of,
    is_columns,
    label_of,
    text_or_table,
)
from submax.cli.logs.log_reading import columns_of, read_log_of
from submax.cli.logs.output_paths import check_folder
from submax.cli.logs.unused_options import is_of_slates
from submax.core.checks import positive
from submax.core.errors import InputError
from submax.core.optional import missing_extra
from submax.evaluation.logs.log import Log
from submax.evaluation.page.report_page import check_report
from submax.evaluation.parts.parted_log import PartedLog
from submax.evaluation.ranking import Slates, compare_rankings
from submax.evaluation.report.comparisons.comparison import Comparison, compare
from submax.evaluation.report.comparisons.reward_comparisons import (
    RewardComparisons,
    compare_rewards,
)
from submax.evaluation.targets.probability_columns import COLUMNS
from submax.simulation.figures.forest import ESTIMATES
from submax.simulation.results import write_csv

READING = ("columns", "declare", "action_features", "skip_bad_rows")
"""Options that say how a log is read."""


class Output(NamedTuple):
    """The folder of the results, what is printed, and the path of the report, if any."""

    folder: Path
    printing: PrintOptions
    report: Path | None


def run_evaluate(
    path: Path,
    policies: Sequence[str],
    out: Path,
    every: bool,
    half_width: float | None,
    effect: float | None,
    report: Path | None,
    **options: Any,
) -> None:
    """Evaluate policies on a log; print the estimates, write them to files and draw them.

    ``options`` are the other options of the command.
    """
    check_folder(out / ESTIMATES)
    if report is not None:
        check_report(report)
    for name, value in (("--half-width", half_width), ("--effect", effect)):
        if value is not None:
            positive(name, value)
    output = Output(out, PrintOptions(every, half_width, effect), report)
    if is_of_slates(options["columns"]):
        _print_and_write(ranked_comparison(path, policies, options), (), output)
    else:
        _evaluate_log(path, policies, output, **options)


def _evaluate_log(
    path: Path,
    policies: Sequence[str],
    output: Output,
    *,
    trust: bool,
    estimators: Sequence[str],
    reward_models: Sequence[str],
    combinations: Sequence[str],
    learn_from: str | None,
    read: str,
    jobs: int | None,
    scheduler: str | None,
    **options: Any,
) -> None:
    """Evaluate policies on a log with one decision in each row."""
    reading = {name: options.pop(name) for name in READING}
    weights = combinations_of(combinations)
    named = {label_of(name): candidate_of(name, trust) for name in policies}
    if len(named) < len(policies):
        raise InputError(
            "two policies have the same name: give one of them as a table with another name, "
            """--policy '{"name": "other", "kind": ...}'"""
        )
    if read == "parts":
        reading["opened"] = partial(PartedLog.open, jobs=jobs, scheduler=scheduler)
    patterns = [one.removeprefix(COLUMNS) for one in policies if is_columns(one)]
    if patterns:
        reading["columns"] = [*reading["columns"], f"probability={','.join(patterns)}"]
    log = read_log_of(path, named, reading)
    print_notes(log.notes)
    options["estimators"] = [text_or_table(one) for one in estimators]
    options["reward_model"] = [text_or_table(one) for one in reward_models] or None
    if isinstance(log, Log) and (log.outcomes is not None or combinations or learn_from):
        by_reward = compare_rewards(
            log, named, combinations=weights, learn_from=learn_from, **options
        )
        _print_by_reward(by_reward, log.notes, output)
    else:
        _print_and_write(compare(log, named, **options), log.notes, output)


def ranked_comparison(
    path: Path, policies: Sequence[str], options: Mapping[str, Any]
) -> Comparison:
    """Return the comparison of ranking policies whose probabilities are columns of the log."""
    columns = columns_of(options["columns"])
    slates = Slates.read(path, columns=columns, policies={name: name for name in policies})
    wanted = {name: options[name] for name in ("estimators", "interval", "level", "seed")}
    return compare_rankings(slates, **wanted)


def _print_by_reward(found: RewardComparisons, known: Sequence[str], output: Output) -> None:
    """Print the comparison by each reward, and write the estimates into a folder for each."""
    for reward, comparison in found.comparisons.items():
        click.echo(f"Reward {reward}")
        # report.html becomes report-click.html.
        path = output.report
        page = path and path.with_name(f"{path.stem}-{reward}{path.suffix}")
        of_reward = output._replace(folder=output.folder / reward, report=page)
        _print_and_write(comparison, known, of_reward)
    print_notes(found.notes)
    write_csv(output.folder / ESTIMATES, found.rows())
    click.echo(f"The estimates by all rewards: {output.folder / ESTIMATES}")


def _print_and_write(found: Comparison, known: Sequence[str], output: Output) -> None:
    """Print a comparison without the notes that are already ``known``, and write its numbers."""
    out, report = output.folder, output.report
    out.mkdir(parents=True, exist_ok=True)
    write_estimates(out, found)
    new_notes = [note for note in found.notes if note not in known]
    print_comparison(found._replace(notes=new_notes), output.printing)
    click.echo(f"All numbers: {out / ESTIMATES}; {_drawn(out)}")
    if report is not None:
        found.report(report, shlex.join(["submax", *sys.argv[1:]]))
        click.echo(f"Report: {report}")


def _drawn(out: Path) -> str:
    """Draw the estimates in a folder, and return where the figure is, or what it needs."""
    if sentence := missing_extra("plots", "the figure", "matplotlib"):
        return f"{sentence}; then submax plot {out}"
    from submax.plots import draw_forest

    return f"figure: {draw_forest(out)[0]}"
