"""Carries out the commands on logs: learn, evaluate and tune."""

import json
import shlex
import sys
import tomllib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from submax.cli.best_policy_report import print_best
from submax.cli.evaluation_report import Shown, print_comparison, write_estimates
from submax.cli.given_policies import (
    candidate_of,
    combinations_of,
    common_schema,
    is_columns,
    label_of,
    learnable,
    learned_among,
    policy_table,
    text_or_table,
)
from submax.core.checks import one_of, positive
from submax.core.errors import InputError
from submax.core.running.extras import missing_extra, require_extra
from submax.evaluation.choosing.best_policy import learn_best
from submax.evaluation.learning import learn
from submax.evaluation.logs.log import By, Log
from submax.evaluation.page.report_page import check_report
from submax.evaluation.parts.parted_log import PartedLog
from submax.evaluation.ranking import Slates, compare_rankings
from submax.evaluation.report.candidates import SUFFIX, Candidate
from submax.evaluation.report.comparison import Comparison, compare
from submax.evaluation.report.reward_comparisons import RewardComparisons, compare_rewards
from submax.evaluation.targets.probability_columns import COLUMNS
from submax.experiments.directory import write_csv
from submax.plots.estimates import ESTIMATES
from submax.schema.schema import Schema

SLATE = "slate="
"""Beginning of a --column that says that the log has ranked lists, a row for each position."""
LISTS = ("context", "probability")
"""Roles whose column is always a list, so that a pattern can be given."""
DECLARED_KEYS = ("actions", "action_features", "context", "rewards")
"""Keys that a --declare file may have: the arguments of ``Log.read`` with these names."""


def run_learn(
    path: Path,
    policies: Sequence[str],
    out: Path,
    share: float,
    by: By,
    keep_rows: int,
    seed: int,
    **reading: Any,
) -> None:
    """Learn a policy, or the best of several, write it to a file, and print notes about the log."""
    check_policy_file(out)
    wanted = [learnable(one) for one in policies]
    log = _log(path, **reading)
    best = learn_best(log, wanted or None, share=share, by=by, seed=seed, keep_rows=keep_rows)
    learned = best.learned
    learned.write(out)
    _print_notes(log.notes)
    name = policies[0] if len(policies) == 1 else best.winner
    if log.schema.context.width and not learned.policy.facts.uses_context:
        click.echo(f"Note: {name} does not look at the context")
    if learned.origin.estimated_propensities:
        click.echo(f"Note: {learned.origin.estimated_propensities} propensities were estimated")
    print_best(best, with_notes=len(policies) != 1)
    if log.reward.min() == log.reward.max():
        click.echo(
            f"Warning: all rows have the reward {log.reward[0]:g}, from which no policy can learn "
            "which action is better: check the column of rewards, or wait for other rewards"
        )
    click.echo(f"{name} learned from {learned.origin.rows} rows of {path}; written to {out}")
    if learned.origin.rows > len(learned.rows.reward):
        click.echo(f"Note: the file stores the last {len(learned.rows.reward)} rows of the log")


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
        named_columns = dict(_column(one) for one in reading["columns"])
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
    log = _log_of(path, named, reading)
    _print_notes(log.notes)
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
    _print_notes(found.notes)
    write_csv(out / ESTIMATES, found.rows())
    click.echo(f"The estimates by all rewards: {out / ESTIMATES}")


def _print_and_write(
    found: Comparison, known: Sequence[str], out: Path, shown: Shown, report: Path | None
) -> None:
    """Print a comparison without the notes that are already ``known``, and write its numbers."""
    out.mkdir(parents=True, exist_ok=True)
    write_estimates(out, found)
    new_notes = [note for note in found.notes if note not in known]
    print_comparison(found._replace(notes=new_notes), shown)
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


def run_tune(
    path: Path,
    policy: str,
    searches: Sequence[str],
    trials: int,
    estimator: str,
    by: By,
    out: Path | None,
    seed: int,
    **reading: Any,
) -> None:
    """Search for the best parameters and print them.

    If ``out`` is given, the best policy learns again from all rows and is written to this file.
    """
    from submax.evaluation.tuning import parse_search, tune

    require_extra("tune", "tuning", "optuna")
    if out is not None:
        check_policy_file(out)
    specification = policy_table(policy)
    wanted = dict(parse_search(one) for one in searches)
    log = _log(path, **reading)

    def print_trial(number: int, values: dict[str, Any], value: float) -> None:
        parameters = ", ".join(f"{key}={one}" for key, one in values.items())
        click.echo(f"{number:3d} of {trials}  {value:8.4f}  {parameters}", err=True)

    best = tune(
        log,
        specification,
        wanted,
        estimator=text_or_table(estimator),
        trials=trials,
        by=by,
        seed=seed,
        progress=print_trial,
    )
    click.echo(f"Best: {json.dumps(best.policy)}")
    click.echo(
        f"Its value is {best.chosen_value:.4f} on the rows by which it was chosen. On rows that "
        "took no part in the choice:"
    )
    print_comparison(best.held_out)
    if out is not None:
        learn(log, best.policy, seed=seed).write(out)
        click.echo(f"The best policy learned from all {len(log)} rows; written to {out}")


def check_folder(path: Path) -> None:
    """Refuse a path to which no file can be written, before any work is done."""
    folder = path.parent
    while not folder.exists():
        folder = folder.parent
    if path.is_dir() or not folder.is_dir():
        blocking = path if path.is_dir() else folder
        kind = "a folder" if path.is_dir() else "not a folder"
        raise InputError(
            f"cannot write {str(path)!r}, because {str(blocking)!r} is {kind}: give another --out"
        )


def check_policy_file(path: Path) -> None:
    """Refuse a path to which no learned policy can be written: wrong ending, or no folder."""
    if path.suffix != SUFFIX:
        raise InputError(
            f"--out is {path.name!r}, and the file of a learned policy must end in {SUFFIX}: "
            f"give --out {path.with_suffix(SUFFIX).name}"
        )
    check_folder(path)
    if not path.parent.is_dir():
        raise InputError(
            f"cannot write {str(path)!r}, because there is no folder {str(path.parent)!r}: make "
            "the folder, or give another --out"
        )


def _log(
    path: Path,
    columns: Sequence[str],
    declare: Path | None,
    action_features: Path | None,
    skip_bad_rows: bool,
    schema: Schema | None = None,
    opened: Callable[..., Any] = Log.read,
) -> Any:
    declared = _declared(declare)
    if action_features is not None:
        if "action_features" in declared:
            raise InputError(
                f"action features are given in {str(declare)!r} and by --action-features: leave "
                "one of the two out"
            )
        declared["action_features"] = action_features
    return opened(
        path,
        columns=dict(_column(one) for one in columns),
        schema=schema,
        skip_bad_rows=skip_bad_rows,
        **declared,
    )


def _log_of(
    path: Path, candidates: dict[str, Candidate], reading: dict[str, Any]
) -> Log | PartedLog:
    """Read the log, with the schema of the candidates that are already learned, if any."""
    schema = common_schema(candidates)
    try:
        found: Log | PartedLog = _log(path, schema=schema, **reading)
        return found
    except InputError as error:
        if schema is None:
            raise
        learned = next(iter(learned_among(candidates)))
        raise InputError(
            f"{error}\n(The log is read with the actions and context of {learned!r}.)"
        ) from error


def reading_options(columns: Sequence[str], declare: Path | None) -> dict[str, Any]:
    """Return the arguments of ``Log.read`` for the options --column and --declare."""
    return {"columns": dict(_column(one) for one in columns), **_declared(declare)}


def _column(text: str) -> tuple[str, Any]:
    role, sign, name = text.partition("=")
    if not sign:
        raise InputError(
            f"--column is {text!r}, and must have the form ROLE=NAME, such as reward=clicked"
        )
    if not name:
        return role, None
    return role, name.split(",") if "," in name or role in LISTS else name


def _declared(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(f"cannot read {str(path)!r}: {error}") from error
    for key in table:
        one_of(f"key in {path.name}:", key, DECLARED_KEYS)
    return table


def _print_notes(notes: Sequence[str]) -> None:
    for note in notes:
        click.echo(f"Note: {note}")
