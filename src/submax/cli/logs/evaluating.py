"""Carries out the command that evaluates policies on a log."""

import shlex
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from submax.cli.logs.evaluation_report import (
    Shown,
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
from submax.cli.logs.log_reading import column_of, read_log_of
from submax.cli.logs.output_paths import check_folder
from submax.core.checks import positive
from submax.core.errors import InputError
from submax.evaluation.logs.log import By, Log
from submax.evaluation.page.report_page import check_report
from submax.evaluation.parts.parted_log import PartedLog
from submax.evaluation.ranking import Slates, compare_rankings
from submax.evaluation.report.comparison import Comparison, compare
from submax.evaluation.report.reward_comparisons import RewardComparisons, compare_rewards
from submax.evaluation.targets.probability_columns import COLUMNS
from submax.experiments.directory import write_csv
from submax.plots.estimates import ESTIMATES
from submax.plots.forest_figure import draw_forest

SLATE = "slate="
"""Beginning of a --column that says that the log has ranked lists, a row for each position."""


def run_evaluate(
    path: Path,
    policies: Sequence[str],
    estimators: Sequence[str],
    interval: str,
    level: float,
    share: float,
    by: By,
    out: Path,
    trust: bool,
    reward_models: Sequence[str],
    baseline: str,
    every: bool,
    half_width: float | None,
    effect: float | None,
    report: Path | None,
    slices: Sequence[str],
    combinations: Sequence[str],
    learn_from: str | None,
    seed: int,
    read: str,
    jobs: int | None,
    scheduler: str | None,
    **reading: Any,
) -> None:
    """Evaluate policies on a log; print the estimates, write them to files and draw them."""
    check_folder(out / ESTIMATES)
    if report is not None:
        check_report(report)
    shown = Shown(every, half_width, effect)
    for name, value in (("--half-width", half_width), ("--effect", effect)):
        if value is not None:
            positive(name, value)
    if any(one.startswith(SLATE) for one in reading["columns"]):
        if report is not None:
            raise InputError(
                "--report and a column of slates are given; a report is allowed for logs with one "
                "decision in each row: leave --report out"
            )
        named_columns = dict(column_of(one) for one in reading["columns"])
        found = ranked_comparison(
            path, policies, named_columns, list(estimators), interval, level, seed
        )
        _print_and_write(found, (), out, shown, None)
        return
    asked: dict[str, Any] = {
        "combinations": combinations_of(combinations),
        "learn_from": learn_from,
    }
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
    options: dict[str, Any] = {
        "estimators": [text_or_table(one) for one in estimators],
        "interval": interval,
        "level": level,
        "share": share,
        "by": by,
        "seed": seed,
        "reward_model": [text_or_table(one) for one in reward_models] or None,
        "baseline": baseline,
        "slices": slices,
    }
    if isinstance(log, Log) and (log.outcomes is not None or combinations or learn_from):
        by_reward = compare_rewards(log, named, **asked, **options)
        _print_by_reward(by_reward, log.notes, out, shown, report)
        return
    _print_and_write(compare(log, named, **options), log.notes, out, shown, report)


def ranked_comparison(
    path: Path,
    policies: Sequence[str],
    columns: dict[str, Any],
    estimators: Sequence[str],
    interval: str,
    level: float,
    seed: int,
) -> Comparison:
    """Return the comparison of ranking policies whose probabilities are columns of the log."""
    slates = Slates.read(path, columns=columns, policies={name: name for name in policies})
    return compare_rankings(
        slates, estimators=estimators, interval=interval, level=level, seed=seed
    )


def _print_by_reward(
    found: RewardComparisons, known: Sequence[str], out: Path, shown: Shown, report: Path | None
) -> None:
    """Print the comparison by each reward, and write the estimates into a folder for each."""
    for reward, comparison in found.comparisons.items():
        click.echo(f"Reward {reward}")
        # report.html becomes report-click.html.
        page = report and report.with_name(f"{report.stem}-{reward}{report.suffix}")
        _print_and_write(comparison, known, out / reward, shown, page)
    print_notes(found.notes)
    write_csv(out / ESTIMATES, found.rows())
    click.echo(f"The estimates by all rewards: {out / ESTIMATES}")


def _print_and_write(
    found: Comparison, known: Sequence[str], out: Path, shown: Shown, report: Path | None
) -> None:
    """Print a comparison without the notes that are already ``known``, and write its numbers."""
    out.mkdir(parents=True, exist_ok=True)
    write_estimates(out, found)
    figure = draw_forest(out)[0]
    new_notes = [note for note in found.notes if note not in known]
    print_comparison(found._replace(notes=new_notes), shown)
    click.echo(f"All numbers: {out / ESTIMATES}; figure: {figure}")
    if report is not None:
        found.report(report, shlex.join(["submax", *sys.argv[1:]]))
        click.echo(f"Report: {report}")
